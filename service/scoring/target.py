"""Which machines compute a bundle's integer products exactly.

x86 without VNNI adds pairs of 8 x 8 bit products in saturating 16-bit sums, so weights of 8 bits
give other numbers there, without an error. Weights of 7 bits are exact everywhere.
"""

from __future__ import annotations

import platform
from collections.abc import Collection
from pathlib import Path

from service.scoring.manifest import Manifest
from service.startup_errors import BundleIncompatible

WEIGHT_BITS = {"avx2": 7, "avx512": 7, "vnni": 8, "arm64": 8}
"""Of int8 weights, by the `--target` of the export; see `model_export.rowwise_int8`."""

VNNI_FLAGS = frozenset({"avx512_vnni", "avx_vnni"})  # as Linux spells them
ARM_MACHINES = frozenset({"aarch64", "arm64"})

CPU_INFO = Path("/proc/cpuinfo")


def cpu_flags(cpu_info: Path = CPU_INFO) -> frozenset[str]:
    """The processor's instruction sets as Linux names them; none where they cannot be read."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def multiplies_eight_bits_exactly(machine: str, flags: Collection[str]) -> bool:
    """Whether 8 x 8 bit products do not saturate.

    Args:
        machine: As of `platform.machine()`.
        flags: As of `cpu_flags()`.
    """
    return machine.lower() in ARM_MACHINES or not VNNI_FLAGS.isdisjoint(flags)


def require_target(
    manifest: Manifest,
    provider: str,
    machine: str | None = None,
    flags: Collection[str] | None = None,
) -> None:
    """Refuse a bundle whose scores would be other ones on this machine.

    Args:
        manifest: Of the bundle.
        provider: Key of `onnx_model.PROVIDERS`.
        machine: None asks the platform.
        flags: None reads this processor's.

    Raises:
        BundleIncompatible: int8 on a GPU, or 8-bit weights on a processor that saturates.
    """
    precision = manifest.precision
    if precision.weights != "int8":
        return
    if provider != "cpu":
        raise BundleIncompatible(
            "the bundle is int8, which is for the CPU; for a GPU export with --precision fp16"
        )
    machine = platform.machine() if machine is None else machine
    flags = cpu_flags() if flags is None else flags
    if WEIGHT_BITS[precision.target] > 7 and not multiplies_eight_bits_exactly(machine, flags):
        seen = "has no VNNI" if flags else "does not say whether it has VNNI"
        raise BundleIncompatible(
            f"the bundle is for {precision.target}: this processor {seen} and may get other scores "
            "without an error; export with --target avx2, which is exact on all"
        )
