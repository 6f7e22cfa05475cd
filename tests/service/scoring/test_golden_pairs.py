from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import sha256_of
from service.scoring.golden_pairs import self_test
from service.startup_errors import BundleCorrupt, GoldenMismatch
from tests.service.scoring.manifest_edits import edit_manifest


def rewrite_golden(bundle: Path, content: str) -> None:
    file = bundle / "golden_pairs.jsonl"
    file.write_text(content, encoding="utf-8")
    digest = sha256_of(file)
    edit_manifest(bundle, lambda fields: fields["files_sha256"].update({file.name: digest}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has 0 golden pairs, the manifest says 32"),
        ('{"query": 7, "ad_text": "x", "logits": [1]}', "must be strings"),
        ('{"query": "q", "ad_text": "x", "logits": [1, 2]}', "2 logits, the head has 1"),
        ('{"query": "q", "ad_text": "x", "logits": ["x"]}', "line 1 is not a golden pair"),
    ],
)
def test_golden_pairs_that_prove_nothing_are_refused(
    bundle: Path, content: str, message: str
) -> None:
    rewrite_golden(bundle, content)
    with pytest.raises(BundleCorrupt, match=message):
        self_test(open_bundle(bundle))


def test_a_machine_that_computes_other_logits_fails_the_self_test(bundle: Path) -> None:
    lines = (bundle / "golden_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    rows[7]["logits"][0] += 5.0
    rewrite_golden(bundle, "\n".join(json.dumps(row) for row in rows))
    with pytest.raises(GoldenMismatch, match=r"1 of 32 .* 0\.2 .* worst by 5: pair 8, query"):
        self_test(open_bundle(bundle))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b'{"query": "\\ud800", "ad_text": "", "logits": [1]}',
        b'{"query": "", "ad_text": "", "logits": [1' + b"0" * 400 + b"]}",
    ],
)
def test_golden_pairs_that_break_the_reader_are_refused_with_their_line(
    bundle: Path, content: bytes
) -> None:
    (bundle / "golden_pairs.jsonl").write_bytes(content)
    hashes = {"golden_pairs.jsonl": sha256_of(bundle / "golden_pairs.jsonl")}
    edit_manifest(bundle, lambda fields: fields["files_sha256"].update(hashes))
    with pytest.raises(BundleCorrupt, match="line 1 is not a golden pair"):
        self_test(open_bundle(bundle))
