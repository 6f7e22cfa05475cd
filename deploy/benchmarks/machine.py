"""What figures were measured on, without a name of the machine or a path on it."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path

from service.cpu import usable_cores

PACKAGES = ("onnxruntime", "numpy", "fastapi", "uvicorn", "tokenizers")


def machine_facts(packages: Sequence[str] = PACKAGES) -> dict[str, str | int]:
    """Processor, cores, date, and versions of Python and of what is named."""
    facts: dict[str, str | int] = {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
    }
    return facts | {name: importlib.metadata.version(name) for name in packages}


def cpu_model() -> str:
    """The processor's own name, with the instructions that decide the speed of int8."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    pairs = (line.partition(":") for line in text.splitlines())
    lines = {key.strip(): value.strip() for key, _, value in pairs}
    flags = set(lines.get("flags", "").split())
    known = [name for name in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if name in flags]
    return " ".join([lines.get("model name", platform.machine()), *known])
