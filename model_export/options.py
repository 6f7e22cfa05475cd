"""What the user of an export decides."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from model_export.errors import ExportError
from model_export.parity import AT_LEAST, TOLERANCES, Tolerances, is_met
from service.scoring.target import WEIGHT_BITS, cpu_flags, multiplies_eight_bits_exactly

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
            rank_agreement is a lower limit of at most 1.
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
            if name == AT_LEAST and value > 1:
                raise ExportError(f"tolerance {name} is {value}, and no agreement is above 1")

    @property
    def for_gpu(self) -> bool:
        """Whether the graph is for a GPU."""
        return self.target == GPU_TARGET

    def require_machine(self) -> None:
        """Refuse to prove a graph on a machine that would compute it otherwise.

        Raises:
            ExportError: Weights of 8 bits, on a processor whose products saturate.
        """
        if (
            self.precision == "int8"
            and WEIGHT_BITS[self.target] > 7
            and not multiplies_eight_bits_exactly(platform.machine(), cpu_flags())
        ):
            raise ExportError(
                f"--target {self.target} has weights of 8 bits, whose products saturate on this "
                "processor: parity would be measured on wrong numbers. Export on a machine with "
                "VNNI or on arm64, or take --target avx2"
            )

    def tolerances_of(self, precision: Precision) -> Tolerances:
        """What a graph of that precision may differ by.

        The user's own, if it is the asked-for one. The fp32 graph on the way there may differ by
        the user's own too where that is more.
        """
        usual = TOLERANCES[precision]
        if precision == self.precision:
            return replace(usual, **self.tolerances)
        looser = {
            name: value
            for name, value in self.tolerances.items()
            if not is_met(name, value, getattr(usual, name))
        }
        return replace(usual, **looser)
