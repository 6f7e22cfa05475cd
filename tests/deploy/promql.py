"""What a PromQL expression names, as far as ours go."""

from __future__ import annotations

import re


def series_in(query: str) -> set[str]:
    """Series that are asked for, recorded ones included."""
    return set(
        re.findall(r"(?<![\w:])((?:\w+:)?adrel[_:][\w:]+|up(?=\{)|process_\w+|python_\w+)", query)
    )


def labels_in(query: str) -> set[str]:
    """Labels that are grouped by, matched on or selected."""
    lists = re.findall(r"\b(?:by|on|ignoring)\s*\(([^)]*)\)", query)
    grouped = {label.strip() for names in lists for label in names.split(",")} - {""}
    return grouped | set(re.findall(r"[{,](\w+)[!=]", query))
