"""How good models are on labelled pairs, how sure that is, and what the simplest methods reach."""
