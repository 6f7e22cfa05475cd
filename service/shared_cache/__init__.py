"""Scores that all replicas share, in redis, behind each one's own cache; optional.

What is not there within a millisecond or two is computed. Whatever redis does, scoring goes on.
"""
