from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from deploy.loadtest.answer_verdict import PairFate
from deploy.loadtest.request_record import RecordedRun, RecordWriter, RequestRecord, read_run


def test_records_of_all_processes_come_back_in_the_order_in_which_they_were_due(
    tmp_path: Path,
) -> None:
    counted: Counter[PairFate] = Counter({"good": 3, "late": 1})
    early = RequestRecord(10.0, 10.5, 11.0, 200, counted, 2)
    late = RequestRecord(12.0, 12.0, 12.1, 429, {"refused": 4}, 0, "429 queue_full")
    for process, record in enumerate((late, early)):
        writer = RecordWriter(tmp_path / "records", process, started_s=9.0 + process)
        writer.write(record)
        writer.close()
    assert read_run(tmp_path / "records") == RecordedRun(9.0, [early, late])


def test_a_run_that_never_began_has_no_records(tmp_path: Path) -> None:
    assert read_run(tmp_path).requests == []


def test_latency_counts_from_when_the_request_was_due() -> None:
    record = RequestRecord(due_s=10.0, sent_s=10.4, answered_s=10.5, status=200, pairs={})
    assert record.latency_ms == pytest.approx(500)
