"""The peers' plain int8 file as a bundle, so that adrel can be measured on the very same graph.

An export would refuse it: scores of such a graph depend on their batch mates. Only for comparison.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from service.scoring.bulk import bulk_logits
from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import GOLDEN_FILE, MANIFEST_FILE, MODEL_FILE, read_manifest
from service.scoring.bundle_files import sha256_of as sha256
from service.scoring.onnx_model import OnnxModel

LOGIT_TOLERANCE = 1.0  # its golden pairs move with their batch


def make_plain_bundle(fp32_bundle: Path, int8: Path, folder: Path) -> None:
    """Copy the fp32 bundle, put the int8 graph in its place, and let the manifest say so.

    Raises:
        StartupError: The result cannot be opened.
    """
    shutil.copytree(fp32_bundle, folder)
    shutil.copyfile(int8, folder / MODEL_FILE)
    original = open_bundle(fp32_bundle)
    model = OnnxModel(folder / MODEL_FILE, n_logits=original.n_logits)
    golden = folder / GOLDEN_FILE
    rows = [json.loads(line) for line in golden.read_text(encoding="utf-8").splitlines()]
    pairs = [original.encoder.encode(row["query"], [row["ad_text"]])[0] for row in rows]
    for row, logits in zip(rows, bulk_logits(model, pairs), strict=True):
        row["logits"] = logits.tolist()
    golden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    manifest = read_manifest(folder).model_dump(mode="json")
    manifest["precision"] |= {"weights": "int8", "recipe": "plain dynamic int8, for comparison"}
    manifest["golden"]["logit_tolerance"] = LOGIT_TOLERANCE
    manifest["files_sha256"] = {name: sha256(folder / name) for name in manifest["files_sha256"]}
    changed = type(original.manifest).model_validate(manifest)
    manifest["model"]["version"] = changed.content_version()
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    open_bundle(folder)
