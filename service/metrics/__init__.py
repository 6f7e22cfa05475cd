"""Prometheus series of the service, by the part that they tell of, and the lines that feed them.

Base units, millisecond-scale buckets, bounded labels; every series exists before the first
request. README, "Metrics", says which question each one answers.
"""
