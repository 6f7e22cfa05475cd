"""A virtual environment for each peer, because none of them agrees with another's versions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

INSTALL_S = 900

RUNTIME = ("numpy==2.4.6", "onnxruntime==1.32.0", "tokenizers==0.23.3")

PACKAGES: dict[str, tuple[str, ...]] = {
    "naive": (
        *RUNTIME, "fastapi==0.165.0", "uvicorn==0.54.0", "httptools==0.9.0", "uvloop==0.23.0",
    ),
    "litserve": (*RUNTIME, "litserve==0.2.19", "uvloop==0.23.0", "httptools==0.9.0"),
    "mosec": (*RUNTIME, "mosec==0.9.8"),
    # Its worker processes die with newer versions of uvloop.
    "mlserver": (*RUNTIME, "mlserver==1.7.1", "uvloop==0.21.0"),
    # Its command line breaks with newer versions of click.
    "infinity": (
        "infinity-emb[server,torch]==0.0.77", "torch==2.13.0", "transformers==4.57.6",
        "sentence-transformers==3.4.1", "click==8.1.8",
    ),
}  # fmt: skip

LIST_VERSIONS = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions()}))"
)


def python_of(work: Path, name: str) -> Path:
    """The interpreter of a peer's environment, which may not exist yet."""
    return work / f"{name}-env" / "bin" / "python"


def install(work: Path, name: str) -> None:
    """Make the environment if it is not there, and install the pinned packages.

    Raises:
        subprocess.SubprocessError: It failed, or took longer than `INSTALL_S`.
    """
    python = python_of(work, name)
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(work / f"{name}-env"))
    _run(str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name])


def versions(work: Path, name: str) -> dict[str, str]:
    """Installed versions of what `PACKAGES` names."""
    listed = subprocess.run(  # noqa: S603  # our own interpreter
        [python_of(work, name), "-c", LIST_VERSIONS],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    installed = {key.replace("_", "-"): value for key, value in json.loads(listed.stdout).items()}
    names = [pin.split("==")[0].split("[")[0] for pin in PACKAGES[name]]
    return {package: installed[package] for package in names}


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_S)  # noqa: S603  # our own arguments
