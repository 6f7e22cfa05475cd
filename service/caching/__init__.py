"""What was computed before: logits of pairs, tokens of ads. Fixed memory, one owner."""
