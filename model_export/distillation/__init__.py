"""A student with fewer layers that learns a teacher's logits, on pairs that nobody has to judge."""
