"""The columns of files of pairs, and which of them a name that is none may have been meant for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

COLUMNS = (
    "query",
    "title",
    "description",
    "text",
    "label",
    "score",
    "grade",
    "max_grade",
    "raters",
    "source",
    "doc_id",
)
"""All that is read of a row."""


def nearest(name: str, columns: Collection[str]) -> str | None:
    """The one of `columns` that the name is spelt nearly like, in whatever case; None: none is."""
    near = get_close_matches(name.strip().lower(), columns, n=1, cutoff=0.8)
    return near[0] if near else None


def meant(names: Iterable[str], missing: Collection[str]) -> str:
    """What to put after "... is missing": which of a row's names may be misspelt.

    Args:
        names: Of a row or a header; those of `COLUMNS` are not looked at.
        missing: Columns that would have been needed.

    Returns:
        "; did you mean 'title' by 'Titel'?", or "" where no name is near.
    """
    found = [
        f"{near!r} by {name!r}"
        for name in names
        if name not in COLUMNS and (near := nearest(name, missing))
    ]
    return f"; did you mean {', '.join(found)}?" if found else ""
