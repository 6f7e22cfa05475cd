from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from service.bulk.atomic_file import atomic_file
from service.bulk.errors import CannotResume, OutputExists, RunInProgress
from service.bulk.part_store import FinishedPart, PartRecord, PartStore, RunIdentity, total

IDENTITY = RunIdentity("1" * 64, "model-a", "csv to csv, 10 rows a part")
PART = FinishedPart(3, b"data", b"rejects", PartRecord(rows=3, scored=2, rejected=1, pairs=2))


def test_parts_that_are_done_are_found_by_the_run_that_resumes(tmp_path: Path) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        store.hold(IDENTITY, resume=False)
        store.write(PART)
    with PartStore(tmp_path / "parts", ".csv") as resumed:
        resumed.hold(IDENTITY, resume=True)
        assert resumed.records() == {3: PART.record}
        assert resumed.data_file(3).read_bytes() == b"data"
        assert resumed.rejects_file(3).read_bytes() == b"rejects"


def test_a_part_without_its_record_is_not_done(tmp_path: Path) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        store.hold(IDENTITY, resume=False)
        store.write(PART)
        (store.folder / "_run" / "done-000003.json").unlink()
        assert store.records() == {}


def test_parts_are_not_taken_over_unless_asked(tmp_path: Path) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        store.hold(IDENTITY, resume=False)
    with pytest.raises(OutputExists, match="--resume"), PartStore(tmp_path / "parts", ".csv") as s:
        s.hold(IDENTITY, resume=False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"input_sha256": "2" * 64}, "the input has changed"),
        ({"model_version": "model-b"}, "by model version model-a, the bundle is model-b"),
        ({"form": "csv to csv, 9 rows a part"}, "another form .*10 rows.*9 rows"),
        ({"layout": 0}, "another form"),
    ],
)
def test_what_belongs_to_another_run_is_not_gone_on_with(
    tmp_path: Path, change: dict[str, str], reason: str
) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        store.hold(IDENTITY, resume=False)
    other = dataclasses.replace(IDENTITY, **change)  # type: ignore[arg-type]  # one of several types
    with pytest.raises(CannotResume, match=reason), PartStore(tmp_path / "parts", ".csv") as s:
        s.hold(other, resume=True)


def test_two_runs_cannot_write_one_folder(tmp_path: Path) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        store.hold(IDENTITY, resume=True)
        with pytest.raises(RunInProgress), PartStore(tmp_path / "parts", ".csv") as other:
            other.hold(IDENTITY, resume=True)


def test_what_a_killed_run_was_writing_is_cleared_away(tmp_path: Path) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        (store.folder / "_run").mkdir(parents=True)
        (store.folder / ".unfinished-part-000000.csv-abc").touch()
        (store.folder / "_run" / ".unfinished-done-000000.json-abc").touch()
        store.hold(IDENTITY, resume=True)
    names = sorted(path.name for path in store.folder.rglob("*"))
    assert names == ["_run", "lock", "run.json"]


def test_removing_the_folder_leaves_what_is_not_ours(tmp_path: Path) -> None:
    with PartStore(tmp_path / "parts", ".csv") as store:
        store.hold(IDENTITY, resume=False)
        store.write(PART)
        store.remove()
        assert not store.folder.exists()
    with PartStore(tmp_path / "parts", ".csv") as again:
        again.hold(IDENTITY, resume=False)
        (again.folder / "notes.txt").touch()
        with pytest.raises(OSError, match="not empty"):
            again.remove()
        assert [path.name for path in again.folder.iterdir()] == ["notes.txt"]


def test_sums_of_no_parts_are_zero() -> None:
    assert total([]) == PartRecord()
    assert total([PART.record, PART.record]) == PartRecord(6, 4, 2, 4)


def test_a_file_that_was_not_finished_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def fail() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"before"
