"""Queries that training must not have seen, told apart as a person would."""

from __future__ import annotations

from collections.abc import Iterable


def query_key(query: str) -> str:
    """The query casefolded, its white space as single spaces: what differs only so is one query."""
    return " ".join(query.casefold().split())


def query_keys(queries: Iterable[str]) -> frozenset[str]:
    """The `query_key` of each."""
    return frozenset(map(query_key, queries))


def shared_queries(training: Iterable[str], held_out: Iterable[str]) -> list[str]:
    """Held-out queries that training has too, sorted, one for each `query_key`."""
    keys = query_keys(training)
    found = {query_key(query): query for query in sorted(held_out, reverse=True)}
    return sorted(query for key, query in found.items() if key in keys)
