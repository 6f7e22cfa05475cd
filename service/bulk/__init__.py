"""Scoring files of pairs with no server: as many as there are, in parts, with the same scores."""
