"""Edges of the histograms' buckets."""

from __future__ import annotations

# An auction gives us 10-50 ms, so the buckets are densest there; the last ones are for bulk. Usual
# timeouts (10, 20, 30, 50, 100, 200, 300 ms) are edges: the share within them is exact.
SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15,
           0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0)  # fmt: skip
PAIRS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512)
TOKENS = (16, 32, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384)
# What BERT's 512 positions take; dense where pairs of ads are.
PAIR_TOKENS = (8, 16, 24, 32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512)
SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COST_RATIOS = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
RATIOS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
