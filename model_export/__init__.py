"""Offline half: from a checkpoint to a bundle that proves itself."""
