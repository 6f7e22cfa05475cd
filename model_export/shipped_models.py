"""The models that come with adrel: what they are called, and where their weights are.

All stand on the same base weights; the repository holds what each adds to them, 2 MiB at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # torch and its kin are slow to import
    from model_export.checkpoint import Checkpoint

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """One of them.

    Attributes:
        folder: Of its adapter or weight delta.
        name: In answers, metrics and the manifest.
    """

    folder: Path
    name: str


SHIPPED_MODELS = {
    "l6": ShippedModel(HERE / "default_model", "adrel-minilm-l6"),
    "l3": ShippedModel(HERE / "students" / "l3", "adrel-minilm-l3"),
    "l2": ShippedModel(HERE / "students" / "l2", "adrel-minilm-l2"),
}
"""By layers, most accurate first."""

DEFAULT_MODEL = "l6"


def load_shipped(model: str, name: str | None = None) -> Checkpoint:
    """A model of `SHIPPED_MODELS` as what the export takes.

    Args:
        model: Its key there.
        name: Name of the model; None takes the usual one.

    Raises:
        BaseWeightsMissing: The base weights were found nowhere.
        ExportError: Its files are not those that were shipped.
    """
    from model_export.adapter_checkpoint import load_adapted
    from model_export.delta_checkpoint import load_delta_checkpoint
    from model_export.weight_delta import is_delta

    shipped = SHIPPED_MODELS[model]
    load = load_delta_checkpoint if is_delta(shipped.folder) else load_adapted
    return load(shipped.folder, None, name or shipped.name)
