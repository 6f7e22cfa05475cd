"""What the user of an export decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from model_export.errors import ExportError
from model_export.parity import TOLERANCES, Tolerances

Precision = Literal["fp32", "fp16", "int8"]
Target = Literal["avx2", "avx512", "vnni", "arm64", "cuda"]

GPU_TARGET: Target = "cuda"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of `export_bundle`.

    Attributes:
        precision: Of the weights.
        target: What the graph is made for. `avx2`, exact on every CPU, and `avx512` have int8
            weights of 7 bits, `vnni` and `arm64` of 8; `cuda` is for fp16 and fp32.
        fall_back: Serve fp32, and say so, where the asked-for precision is past a tolerance.
        tolerances: Those that differ from the precision's own, by their names in `Tolerances`.
        with_latency: Measure latency against batch size for the report; the only part of a
            bundle whose bytes differ from one export to the next.
    """

    precision: Precision = "int8"
    target: Target = "avx2"
    fall_back: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)
    with_latency: bool = True

    def __post_init__(self) -> None:
        """Refuse what does not fit together.

        Raises:
            ExportError: int8 for a GPU, fp16 for a CPU, or a tolerance that is out of range.
        """
        on_gpu = self.target == GPU_TARGET
        if self.precision == "int8" and on_gpu:
            raise ExportError("int8 is for CPUs: for --target cuda take --precision fp16 or fp32")
        if self.precision == "fp16" and not on_gpu:
            raise ExportError(
                f"fp16 is for GPUs: for --target {self.target} take --precision int8 or fp32"
            )
        known = {entry.name for entry in fields(Tolerances)}
        for name, value in self.tolerances.items():
            if name not in known or not 0 <= value < float("inf"):
                raise ExportError(f"tolerance {name} is {value}, which is not a number from 0 on")

    @property
    def for_gpu(self) -> bool:
        """Whether the graph is for a GPU."""
        return self.target == GPU_TARGET

    def tolerances_of(self, precision: Precision) -> Tolerances:
        """What a graph of that precision may differ by; the user's own only if it is served."""
        own = self.tolerances if precision == self.precision else {}
        return replace(TOLERANCES[precision], **own)
