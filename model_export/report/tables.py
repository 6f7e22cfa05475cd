"""HTML tables from rows. Everything that is shown is escaped here, and nowhere is it not."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model_export.report.number_text import number
from model_export.report.shown_text import shown_text

# The texts of pairs were cut when they were stored; each of their characters may be spelled out.
MAX_TYPED_CHARS = 2_000


class Markup(str):
    """HTML that was made here, and is not escaped again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how a row's cell is made; numbers stand to the right."""

    key: str
    heading: str
    is_number: bool = True


def escaped(value: Any) -> Markup:  # noqa: ANN401  # whatever report.json holds
    """`value` as HTML text; numbers as people read them."""
    if isinstance(value, Markup):
        return value
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return Markup(html.escape(number(value)))
    return Markup(html.escape(str(value)))


def typed(text: str) -> Markup:
    """A text from outside, in a box that neither its direction nor its marks can leave."""
    safe = html.escape(shown_text(text, MAX_TYPED_CHARS))
    return Markup(f'<bdi class="typed" dir="auto">{safe}</bdi>')


def table(
    columns: Sequence[Column],
    rows: Iterable[Mapping[str, Any]],
    caption: str,
    *,
    kind: str = "",
    marked: str = "",
) -> str:
    """One table.

    Args:
        columns: What to show of each row; a key that a row lacks is shown as a dash.
        rows: Cells by key.
        caption: What it shows, with units.
        kind: CSS class.
        marked: Key of the row's flag that sets it in bold.
    """
    head = "".join(
        f'<th scope="col"{_number_class(column)}>{escaped(column.heading)}</th>'
        for column in columns
    )
    body = []
    for row in rows:
        cells = "".join(
            f'<td data-name="{escaped(column.heading)}"{_number_class(column)}>'
            f"{escaped(row.get(column.key))}</td>"
            for column in columns
        )
        chosen = ' class="chosen"' if marked and row.get(marked) else ""
        body.append(f"<tr{chosen}>{cells}</tr>")
    return (
        f'<div class="wide"><table class="{escaped(kind)}"><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(body) + "\n</tbody></table></div>"
    )


def _number_class(column: Column) -> str:
    return ' class="n"' if column.is_number else ""
