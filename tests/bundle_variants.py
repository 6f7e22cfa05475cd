"""Bundles that differ from another one in their version alone, made without an export."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from service.scoring.bundle_files import MANIFEST_FILE, read_manifest


def of_another_version(bundle: Path, out: Path, logit_tolerance: float = 0.5) -> Path:
    """A copy at `out` whose golden pairs may be off by another amount, which makes a version."""
    shutil.copytree(bundle, out)
    file = out / MANIFEST_FILE
    fields = json.loads(file.read_text(encoding="utf-8"))
    fields["golden"]["logit_tolerance"] = logit_tolerance
    file.write_text(json.dumps(fields), encoding="utf-8")
    fields["model"]["version"] = read_manifest(out).content_version()
    file.write_text(json.dumps(fields), encoding="utf-8")
    return out


def damage(bundle: Path) -> None:
    """Change one byte of its graph."""
    with (bundle / "model.onnx").open("r+b") as graph:
        graph.seek(100)
        byte = graph.read(1)[0]
        graph.seek(100)
        graph.write(bytes([byte ^ 1]))


def link(to: Path, at: Path) -> None:
    """Set a symbolic link anew, in one step."""
    made = at.with_name(f"{at.name}.new")
    made.symlink_to(to)
    made.rename(at)
