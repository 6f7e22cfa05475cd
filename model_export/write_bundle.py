"""Writing a bundle: to a temporary folder, opened there with the service's own loader, renamed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from model_export.errors import ExportError
from model_export.report.evidence import Evidence
from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import (
    GOLDEN_FILE,
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    sha256_of,
)
from service.scoring.golden_pairs import self_test
from service.scoring.manifest import Manifest


@dataclass(frozen=True, slots=True)
class GoldenPair:
    """A reference pair with the logits that the exported graph gave."""

    query: str
    ad_text: str
    logits: tuple[float, ...]


def write_bundle(
    out: Path,
    graph: Path,
    tokenizer: Tokenizer,
    golden: Sequence[GoldenPair],
    facts: dict[str, Any],
    evidence: Callable[[Manifest], Evidence] | None = None,
) -> Manifest:
    """Write a complete bundle to `out`, or nothing.

    Args:
        out: The folder to make. An older bundle there is replaced in one step.
        graph: File of the graph to serve.
        tokenizer: With no truncation or padding of its own.
        golden: Reference pairs with this graph's logits.
        facts: Every field of the manifest but `files_sha256`, with no `version` in `model`.
        evidence: Gives what the report shows; None writes no report. The report is for people:
            it is not among the hashed files, since the figures of its latency never repeat.

    Returns:
        The manifest as written.

    Raises:
        ExportError: `out` exists and is not a bundle.
        StartupError: The service's loader refuses what was written, which is a bug of ours.
    """
    check_target(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        folder = Path(scratch) / "bundle"
        folder.mkdir()
        shutil.copyfile(graph, folder / MODEL_FILE)
        tokenizer.save(str(folder / TOKENIZER_FILE))
        rows = [json.dumps({"query": p.query, "ad_text": p.ad_text, "logits": p.logits})
                for p in golden]  # fmt: skip
        (folder / GOLDEN_FILE).write_text("\n".join(rows) + "\n", encoding="utf-8")
        hashes = {
            name: sha256_of(folder / name) for name in (MODEL_FILE, TOKENIZER_FILE, GOLDEN_FILE)
        }
        golden_facts = {**facts["golden"], "n_pairs": len(golden)}
        fields = {**facts, "golden": golden_facts, "files_sha256": hashes}
        unversioned = Manifest.model_validate(
            {**fields, "model": {**facts["model"], "version": "unknown"}}
        )
        model = {**facts["model"], "version": unversioned.content_version()}
        manifest = Manifest.model_validate({**fields, "model": model})
        text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
        (folder / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")
        self_test(open_bundle(folder))
        if evidence is not None:
            from model_export.report.files import write_report  # draws: slow to import

            write_report(folder, evidence(manifest))
        _replace(folder, out, Path(scratch) / "old")
    return manifest


def check_target(out: Path) -> None:
    """Refuse a target that would overwrite something other than a bundle.

    Raises:
        ExportError: `out` exists, is not empty and is not a bundle, or it cannot be made.
    """
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or _is_bundle(out))):
        raise ExportError(f"{out} exists and is not a bundle; choose another --out or remove it")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ExportError(f"{out} cannot be made: {above} is not a folder that can be written to")


def _is_bundle(folder: Path) -> bool:
    """Of any schema version. Others have a manifest.json too, and theirs must not be deleted."""
    try:
        fields = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(fields, dict) and {"schema_version", "files_sha256"} <= fields.keys()


def _replace(new: Path, out: Path, parked: Path) -> None:
    """Put `new` at `out`; what was there is parked and goes with the temporary folder."""
    if out.exists():
        out.rename(parked)
    try:
        new.rename(out)
    except OSError:
        if parked.exists():
            parked.rename(out)
        raise
    shutil.rmtree(parked, ignore_errors=True)
