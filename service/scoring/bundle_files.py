"""What lies in a bundle's folder, and whether it is what was exported."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from service.scoring.manifest import SCHEMA_VERSION, Manifest
from service.startup_errors import BundleCorrupt, BundleIncompatible, BundleMissing

MANIFEST_FILE = "manifest.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
GOLDEN_FILE = "golden_pairs.jsonl"


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path) -> Manifest:
    """The manifest of the bundle at `path`.

    Raises:
        BundleMissing: There is no manifest.
        BundleCorrupt: It is not JSON, or not a manifest of the version that it states.
        BundleIncompatible: It has a schema version that this service does not know.
    """
    file = path / MANIFEST_FILE
    with reading(path):
        if not file.is_file():
            raise BundleMissing(path)
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        stated = fields["schema_version"]
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise BundleCorrupt(f"{file} is not a manifest: {error!r}") from error
    if stated != SCHEMA_VERSION:
        raise BundleIncompatible(
            f"{file} has schema version {stated}, this service reads {SCHEMA_VERSION}; "
            "export the model again or deploy the matching service"
        )
    try:
        return Manifest.model_validate(fields)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise BundleCorrupt(f"{file} is not a valid manifest: {faults}") from error


def verified_manifest(path: Path) -> Manifest:
    """The manifest of the bundle at `path`, once every file there is the one that it lists.

    Raises:
        BundleMissing: No bundle there.
        BundleCorrupt: A file is absent or its hash differs; says which, expected and actual.
        BundleIncompatible: It has a schema version that this service does not know.
    """
    manifest = read_manifest(path)
    with reading(path):
        _check_files(path, manifest)
    return manifest


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """A file that cannot be read is a fault of the bundle, and the message names it."""
    try:
        yield
    except OSError as error:
        raise BundleCorrupt(f"bundle at {path} cannot be read: {error}") from error


def _check_files(path: Path, manifest: Manifest) -> None:
    missing = {MODEL_FILE, TOKENIZER_FILE, GOLDEN_FILE} - set(manifest.files_sha256)
    if missing:
        raise BundleCorrupt(f"bundle at {path}: the manifest lists no {', '.join(sorted(missing))}")
    for name, expected in manifest.files_sha256.items():
        file = path / name
        if Path(name).name != name or not file.is_file():
            raise BundleCorrupt(f"bundle at {path}: file {name} is missing")
        actual = sha256_of(file)
        if actual != expected:
            raise BundleCorrupt(
                f"bundle at {path}: {name} has sha256 {actual}, the manifest says {expected}"
            )
    if manifest.model.version != manifest.content_version():
        raise BundleCorrupt(
            f"bundle at {path}: the manifest says version {manifest.model.version}, its content is "
            f"{manifest.content_version()}: it was changed after the export"
        )
