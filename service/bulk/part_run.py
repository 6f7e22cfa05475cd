"""One part from the input to its bytes; the same for one process and for a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.bulk.csv_format import CsvFormat
from service.bulk.errors import InputChanged
from service.bulk.jsonl_format import JsonlFormat
from service.bulk.outputs import OutputFormat, ScoredRows, output_format, reject_line
from service.bulk.parquet_table import ParquetTable
from service.bulk.part_scorer import PartScorer, PartScores, StartedPart
from service.bulk.part_store import FinishedPart, PartRecord, RunIdentity
from service.bulk.table import (
    Block,
    FileFormat,
    PairTable,
    PartSize,
    PartSpec,
    Survey,
    format_of,
    stamp_of,
)
from service.bulk.text_table import TextTable


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All that a part's bytes depend on, but for the model; it can be sent to another machine.

    Attributes:
        path: The input.
        out: Format of the output.
        survey: Of the input, without its parts.
        limit_bytes: Longest row, and most text of a pair.
    """

    path: Path
    out: FileFormat
    survey: Survey
    limit_bytes: int


def open_table(path: Path, limit_bytes: int) -> PairTable:
    """The input, by the suffix of its name.

    Raises:
        WrongArguments: It names no format.
        ExtraMissing: It is Parquet, and pyarrow is not installed.
        InputUnusable: It cannot be read.
    """
    match format_of(path):
        case "parquet":
            return ParquetTable(path)
        case "csv":
            return TextTable(path, CsvFormat(limit_bytes), limit_bytes)
        case "jsonl":
            return TextTable(path, JsonlFormat(limit_bytes), limit_bytes)


def identity_of(plan: RunPlan, size: PartSize, model_version: str) -> RunIdentity:
    """What decides the bytes of the run's parts."""
    form = f"{format_of(plan.path)} to {plan.out}, {size.rows} rows a part"
    return RunIdentity(plan.survey.sha256, model_version, form)


def schema_of(table: PairTable) -> Any:  # noqa: ANN401  # a pyarrow.Schema, or None
    """Types of the input's columns, where it has them."""
    return table.schema if isinstance(table, ParquetTable) else None


@dataclass(frozen=True, slots=True)
class RunningPart:
    """A part that is being scored."""

    spec: PartSpec
    block: Block
    started: StartedPart


class PartRun:
    """Reads, scores and forms parts. Two may be under way, so that no thread waits for reading."""

    def __init__(self, plan: RunPlan, table: PairTable, scorer: PartScorer) -> None:
        """Join the sides.

        Args:
            plan: Of the run.
            table: Its input.
            scorer: Its model.

        Raises:
            ExtraMissing: The output is Parquet, and pyarrow is not installed.
        """
        self._plan = plan
        self._table = table
        self._scorer = scorer
        self._output = writer_of(plan, table)

    def start(self, spec: PartSpec) -> RunningPart:
        """Read a part and line its pairs up.

        Raises:
            InputChanged: It is not the input that was surveyed.
        """
        block = self._table.read(spec)
        if stamp_of(self._plan.path) != self._plan.survey.stamp or len(block.rows) != spec.n_rows:
            raise InputChanged(
                f"{self._plan.path} was changed while it was scored; what is done cannot be trusted"
            )
        return RunningPart(spec, block, self._scorer.start(block.rows))

    def finish(
        self, part: RunningPart, on_progress: Callable[[int], None] = lambda _: None
    ) -> FinishedPart:
        """Wait for the scores and form the bytes.

        Args:
            part: That was started.
            on_progress: Told how many more rows are done.

        Raises:
            InferenceFailed: The runtime failed on a batch.
        """
        scores = self._scorer.finish(part.started, on_progress)
        scored = ScoredRows(
            scores.indices, scores.scores, scores.truncated, self._scorer.model_version
        )
        record = PartRecord(
            part.spec.n_rows, len(scores.indices), len(scores.rejected), scores.n_pairs
        )
        data = self._output.part(part.block, scored)
        return FinishedPart(part.spec.number, data, _rejects(part.block, scores), record)


def writer_of(plan: RunPlan, table: PairTable) -> OutputFormat:
    """What forms the output of a run.

    Raises:
        ExtraMissing: It is Parquet, and pyarrow is not installed.
    """
    return output_format(plan.out, plan.survey.columns, schema_of(table))


def _rejects(block: Block, scores: PartScores) -> bytes:
    lines = []
    for index, reason in sorted(scores.rejected.items()):
        row = block.rows[index]
        content = row.raw if row.fields is None else block.carried([index])[0]
        lines.append(reject_line(row.number, row.line, reason, content))
    return b"".join(lines)
