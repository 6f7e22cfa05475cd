from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from service.bulk.errors import BulkError, CannotResume, InputChanged, OutputExists, WrongArguments
from service.bulk.part_scorer import PartScorer, StartedPart
from service.bulk.part_store import PartStore
from service.bulk.score_file import FileJob, Summary, score_file
from service.bulk.table import InputRow, PartSize
from service.scoring.bundle import Bundle, open_bundle

WORDS = "red blue green shoe bag cheap run fast long lamp chair".split()  # noqa: SIM905  # reads better
SMALL_PARTS = PartSize(rows=7)


@pytest.fixture(scope="module")
def bundle(tiny_bundle_int8: Path) -> Bundle:
    return open_bundle(tiny_bundle_int8)


@pytest.fixture(scope="module")
def other_bundle(tiny_bundle_fp32: Path) -> Bundle:
    return open_bundle(tiny_bundle_fp32)


def row(number: int) -> dict[str, Any]:
    """Every fifth pair has come before; every ninth row is none."""
    word = number - 4 if number % 5 == 4 else number
    ad = " ".join(WORDS[(word + step) % len(WORDS)] for step in range(1 + word % 8))
    pair = {"id": number, "query": WORDS[word % 7], "title": ad, "price": number / 4}
    if number % 9 == 8:
        del pair["query"]
    return pair


ROWS = [row(number) for number in range(40)]


def lines_file(folder: Path, rows: list[dict[str, Any]] | None = None) -> Path:
    path = folder / "pairs.jsonl"
    lines = [json.dumps(row) for row in ROWS if rows is None] + [json.dumps(r) for r in rows or ()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def job(path: Path, out: str = "scores.jsonl", *, resume: bool = False) -> FileJob:
    rejects = path.with_name("rejects.jsonl")
    return FileJob(path, path.with_name(out), rejects, resume, 10_000, SMALL_PARTS)


def score(work: FileJob, bundle: Bundle, threads: int = 2) -> Summary:
    return score_file(work, bundle, threads, io.StringIO())


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_row_is_scored_in_order_or_set_aside_with_a_reason(
    bundle: Bundle, tmp_path: Path
) -> None:
    work = job(lines_file(tmp_path))
    summary = score(work, bundle)
    scored, rejected = read_lines(work.out), read_lines(work.rejects)
    assert [row["id"] for row in scored] == [n for n in range(40) if n % 9 != 8]
    assert rejected == [
        {"row": n + 1, "line": n + 1, "reason": "query: Field required", "content": ROWS[n]}
        for n in range(8, 40, 9)
    ]
    assert (summary.record.rows, summary.record.scored, summary.record.rejected) == (40, 36, 4)
    assert summary.n_now == 40
    assert not work.parts_folder.exists()


def test_a_row_keeps_its_columns_and_gets_the_score_of_its_pair_alone(
    bundle: Bundle, tmp_path: Path
) -> None:
    work = job(lines_file(tmp_path))
    score(work, bundle)
    for scored in read_lines(work.out):
        [alone] = bundle.encoder.encode(scored["query"], [scored["title"]])
        [expected] = bundle.to_scores(bundle.model.logits([alone]))
        version = bundle.manifest.model.version
        added = {"score": float(expected), "model_version": version, "truncated": False}
        assert scored == ROWS[scored["id"]] | added


def test_a_pair_that_comes_again_is_computed_once(bundle: Bundle, tmp_path: Path) -> None:
    pair = {"query": "red shoe", "text": "cheap red shoe"}
    work = job(lines_file(tmp_path, [pair, {**pair, "id": 2}, {**pair, "query": "blue"}]))
    summary = score(work, bundle)
    first, again, other = (row["score"] for row in read_lines(work.out))
    assert first == again != other
    assert summary.record.pairs == 2


def test_the_number_of_threads_changes_nothing(bundle: Bundle, tmp_path: Path) -> None:
    one, many = job(lines_file(tmp_path), "one.jsonl"), job(lines_file(tmp_path), "many.jsonl")
    score(one, bundle, threads=1)
    one.rejects.unlink()
    score(many, bundle, threads=3)
    assert one.out.read_bytes() == many.out.read_bytes()


def test_columns_of_an_earlier_scoring_are_replaced(bundle: Bundle, tmp_path: Path) -> None:
    old = {"query": "red", "score": 2, "text": "shoe", "model_version": "old", "truncated": 0}
    work = job(lines_file(tmp_path, [old]))
    score(work, bundle)
    [new] = read_lines(work.out)
    assert list(new) == ["query", "text", "score", "model_version", "truncated"]
    assert new["score"] < 1
    assert new["model_version"] == bundle.manifest.model.version


def test_what_did_not_fit_is_marked(bundle: Bundle, tmp_path: Path) -> None:
    work = job(lines_file(tmp_path, [{"query": "red", "text": "shoe " * 200}]))
    score(work, bundle)
    assert [row["truncated"] for row in read_lines(work.out)] == [True]


def test_csv_and_json_lines_say_the_same(bundle: Bundle, tmp_path: Path) -> None:
    rows = [{"query": "red", "title": "a, \"b\"", "tags": [1, "é"], "price": 1.0, "new": None},
            {"query": "red", "title": "two\nlines", "more": True}]  # fmt: skip
    work = job(lines_file(tmp_path, rows), "scores.csv")
    score(work, bundle)
    work.rejects.unlink()
    table = list(csv.DictReader(io.StringIO(work.out.read_text(encoding="utf-8"), newline="")))
    assert [
        {name: cell for name, cell in row.items() if name not in ("score", "model_version")}
        for row in table
    ] == [
        {"query": "red", "title": 'a, "b"', "tags": '[1, "é"]', "price": "1.0", "new": "",
         "more": "", "truncated": "false"},
        {"query": "red", "title": "two\nlines", "tags": "", "price": "", "new": "",
         "more": "true", "truncated": "false"},
    ]  # fmt: skip
    again = job(work.out, "again.jsonl")
    score(again, bundle)
    assert [row["score"] for row in read_lines(again.out)] == [float(row["score"]) for row in table]


@pytest.mark.parametrize("out", ["scores.csv", "scores.jsonl"])
def test_a_file_without_rows_gives_one_without_rows(
    bundle: Bundle, tmp_path: Path, out: str
) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("query,text\n", encoding="utf-8")
    work = job(path, out)
    summary = score(work, bundle)
    expected = "query,text,score,model_version,truncated\n" if out.endswith("csv") else ""
    assert work.out.read_text(encoding="utf-8") == expected
    assert summary.record.rows == 0


class StopsScorer(PartScorer):
    """Ends the run as a crash would, with the third part."""

    parts_left = 2

    def start(self, rows: Any) -> StartedPart:  # noqa: ANN401
        if not self.parts_left:
            raise KeyboardInterrupt
        self.parts_left -= 1
        return super().start(rows)


def stop_early(work: FileJob, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends with one whole part behind it."""
    with monkeypatch.context() as patched:
        patched.setattr("service.bulk.score_file.PartScorer", StopsScorer)
        with pytest.raises(KeyboardInterrupt):
            score(work, bundle)


@pytest.fixture
def stopped(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileJob:
    """What goes on where a run has stopped."""
    work = job(lines_file(tmp_path))
    stop_early(work, bundle, monkeypatch)
    return job(work.path, resume=True)


@pytest.mark.parametrize("out", ["scores.jsonl", "scores.csv"])
def test_a_resumed_run_ends_with_the_bytes_of_an_uninterrupted_one(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    work = job(lines_file(tmp_path), out)
    score(work, bundle)
    expected = work.out.read_bytes(), work.rejects.read_bytes()
    work.out.unlink()
    work.rejects.unlink()
    stop_early(work, bundle, monkeypatch)
    assert not work.out.exists()
    summary = score(job(work.path, out, resume=True), bundle)
    assert (work.out.read_bytes(), work.rejects.read_bytes()) == expected
    assert (summary.n_now, summary.record.rows) == (33, 40)


def test_a_stop_while_the_output_is_put_together_is_resumed_too(
    bundle: Bundle, stopped: FileJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("service.bulk.part_store.PartStore.remove", stop)
        with pytest.raises(KeyboardInterrupt):
            score(stopped, bundle)
    expected = stopped.out.read_bytes()
    summary = score(stopped, bundle)
    assert stopped.out.read_bytes() == expected
    assert summary.n_now == 0


@pytest.mark.parametrize("n_deleted", [1, 8, 14])
def test_a_stop_while_the_parts_are_deleted_is_resumed_too(
    bundle: Bundle, stopped: FileJob, monkeypatch: pytest.MonkeyPatch, n_deleted: int
) -> None:
    remove, unlink, allowed = PartStore.remove, Path.unlink, iter(range(n_deleted))

    def stopped_unlink(path: Path, missing_ok: bool = False) -> None:
        if next(allowed, None) is None:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    def stopped_remove(store: PartStore) -> None:
        with monkeypatch.context() as deleting:
            deleting.setattr(Path, "unlink", stopped_unlink)
            remove(store)

    with monkeypatch.context() as patched:
        patched.setattr(PartStore, "remove", stopped_remove)
        with pytest.raises(KeyboardInterrupt):
            score(stopped, bundle)
    expected = stopped.out.read_bytes()
    score(stopped, bundle)
    assert stopped.out.read_bytes() == expected
    assert not stopped.parts_folder.exists()


def test_a_resume_with_nothing_to_go_on_with_begins(bundle: Bundle, tmp_path: Path) -> None:
    assert score(job(lines_file(tmp_path), resume=True), bundle).record.rows == 40


def test_a_changed_input_is_not_resumed(bundle: Bundle, stopped: FileJob) -> None:
    with stopped.path.open("a", encoding="utf-8") as file:
        file.write("\n{}")
    with pytest.raises(CannotResume, match="the input has changed"):
        score(stopped, bundle)


def test_another_model_does_not_resume(stopped: FileJob, other_bundle: Bundle) -> None:
    with pytest.raises(CannotResume, match="model version"):
        score(stopped, other_bundle)


def test_an_input_that_is_written_to_meanwhile_ends_the_run(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = job(lines_file(tmp_path))

    class Meddles(PartScorer):
        def start(self, rows: Any) -> StartedPart:  # noqa: ANN401
            lines_file(tmp_path, [{"query": "q"}])
            return super().start(rows)

    monkeypatch.setattr("service.bulk.score_file.PartScorer", Meddles)
    with pytest.raises(InputChanged, match=r"pairs\.jsonl was changed"):
        score(work, bundle)


def test_nothing_is_overwritten(bundle: Bundle, tmp_path: Path) -> None:
    path = lines_file(tmp_path)
    for taken in ("scores.jsonl", "rejects.jsonl"):
        (tmp_path / taken).write_text("mine", encoding="utf-8")
        with pytest.raises(OutputExists, match=taken):
            score(job(path), bundle)
        (tmp_path / taken).unlink()
    with pytest.raises(WrongArguments, match="three different files"):
        score(job(path, "pairs.jsonl"), bundle)


def test_names_without_a_known_suffix_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(BulkError, match=r"scores\.txt: the name must end in \.jsonl, \.csv"):
        score(job(lines_file(tmp_path), "scores.txt"), bundle)
    other = tmp_path / "pairs.tsv"
    other.touch()
    with pytest.raises(BulkError, match=r"pairs\.tsv"):
        score(job(other), bundle)


def test_a_pair_without_a_finite_score_is_set_aside(bundle: Bundle) -> None:
    with PartScorer(bundle, 1, 1000) as scorer:
        rows = [InputRow(n + 1, n + 1, {"query": "q", "text": "ab"[n]}) for n in range(2)]
        part = scorer.start(rows)
        for running in part.running:
            running.result()[0] = float("nan")
        scores = scorer.finish(part)
    assert scores.indices == [1]
    assert scores.rejected == {0: "failed: the model gave no finite score"}
