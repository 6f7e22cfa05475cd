"""Labelled (query, ad) pairs, and what the fields of their files mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from model_export.column_names import meant
from model_export.errors import BadPairsFile
from model_export.judgements import Grade, parse_grade, parse_raters, parse_relevance
from model_export.pair_files import PairsFormat, Row, read_rows
from model_export.pair_notes import contradictions, ignored_columns
from service.domain import Ad

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """One (query, ad) pair with what people said about it.

    Attributes:
        query: What the user typed; pairs that share it form one ranking.
        ad: The ad; its id is the file's `doc_id`, else the line number.
        label: Relevance in 0-1.
        grade: The graded judgement behind the label, where known.
        rater_votes: What the single raters said, where known, in 0-1: a grade is divided by the
            best one possible.
        source: Name of the collection that the pair comes from, "" if not said.
    """

    query: str
    ad: Ad
    label: float
    grade: Grade | None = None
    rater_votes: tuple[float, ...] = ()
    source: str = ""

    @property
    def judgement(self) -> Grade:
        """What orders it in a ranking: its grade, or its label, of 0-1, where there is no grade."""
        return Grade(self.label, 1.0) if self.grade is None else self.grade

    @property
    def gain(self) -> float:
        """What the pair adds to a ranking, in 0-1, see `Grade.gain`."""
        return self.judgement.gain


def read_pairs(
    path: Path,
    file_format: PairsFormat | None = None,
    max_grade: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[LabelledPair]:
    """The pairs of a JSONL or CSV file, in its order; blank lines are skipped.

    A row has `query`, either `text` or `title` (with an optional `description`), and what people
    said: `label` or `score` (0-1) or `grade` with the best grade possible, `max_grade`. The first
    of these three that it has is the pair's relevance, in training as in evaluation; a grade
    also orders it in a ranking. `raters`, `source` and `doc_id` are optional, other keys are
    ignored. `grade` and `raters` are of 0 to `max_grade`; where the row has a label or score, a
    `grade` and no maximum, of 0-3; `raters` with neither grade nor maximum are votes of 0-1.

    Args:
        path: The file.
        file_format: None goes by its name: `.csv` is CSV, all else JSON Lines.
        max_grade: The best grade, for rows that do not say it themselves.
        tell: Told a sentence on columns that nothing reads, and one on rows that contradict each
            other.

    Raises:
        BadPairsFile: The file cannot be read, holds no pair, or a row breaks the rules; the
            message has the path, the line number and the reason.
    """
    pairs, lines = [], []
    columns: set[str] = set()
    for line_number, row in read_rows(path, file_format):
        try:
            pairs.append(_parse_pair(row, line_number, max_grade))
            lines.append(line_number)
            columns |= row.keys()
        except ValueError as error:
            raise BadPairsFile(f"{path}, line {line_number}: {error}") from error
    if not pairs:
        raise BadPairsFile(f"{path}: holds no pairs; expected a JSON object or a CSV row for each")
    if ignored := ignored_columns(columns):
        tell(f"note: {path}: {ignored}")
    if contradicted := contradictions(pairs, lines):
        tell(f"warning: {path}: {contradicted}")
    return pairs


def parse_query(row: Row) -> str:
    """The query of a row.

    Raises:
        ValueError: It is missing or not text.
    """
    query = _text(row, "query")
    if not query:
        raise ValueError(f"'query' is missing or empty{meant(row, ('query',))}")
    return query


def parse_ad(row: Row, line_number: int) -> Ad:
    """The ad of a row; its id is `doc_id`, else the line number.

    Raises:
        ValueError: It has neither a title nor a text, or they are not text.
    """
    ad = Ad(
        id=str(row.get("doc_id") or line_number),
        title=_text(row, "title"),
        description=_text(row, "description"),
        text=_text(row, "text"),
    )
    if not (ad.text or ad.title):
        raise ValueError(f"the ad has neither 'title' nor 'text'{meant(row, ('title', 'text'))}")
    return ad


def _parse_pair(row: Row, line_number: int, max_grade: float | None) -> LabelledPair:
    query, ad = parse_query(row), parse_ad(row, line_number)
    label = parse_relevance(row, max_grade)
    if label is None:
        raise ValueError(
            "'label' is missing, and so are 'score' and 'grade'"
            f"{meant(row, ('label', 'score', 'grade'))}"
        )
    return LabelledPair(
        query=query,
        ad=ad,
        label=label,
        grade=parse_grade(row, max_grade),
        rater_votes=parse_raters(row, max_grade),
        source=_text(row, "source"),
    )


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"'{key}' must be a string, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair: no text has it
        raise ValueError(f"'{key}' is not Unicode text: {error.reason}") from error
    return value.strip()
