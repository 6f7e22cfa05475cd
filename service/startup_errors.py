"""Every reason not to start: one line on stderr, exit 1; never HTTP.

StartupError                  any of these
|- UnknownSetting             an ADREL_ variable that nothing reads
|- InvalidSetting             a setting whose value cannot work
|- CannotListen               the address is in use or not ours
|- NoSharedFolder             several workers have no place for what they share
|- BundleMissing              no bundle where one was named
|- BundleCorrupt              a file is absent or is not the one that was exported
|- BundleIncompatible         made for another version of the service, or for other inputs
|- ProviderUnavailable        the execution provider asked for is not there
`- GoldenMismatch             this machine does not compute the logits that the export saw
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class StartupError(Exception):
    """The service must not start. Printed as one line; exit code 1."""


class UnknownSetting(StartupError):
    """An environment variable with our prefix that no setting reads."""

    def __init__(self, name: str, suggestion: str | None) -> None:
        hint = f"; did you mean {suggestion}?" if suggestion else ""
        super().__init__(f"unknown setting {name}{hint}")


class InvalidSetting(StartupError):
    """A setting has a value that cannot work; the message names it and the reason."""


def address_of(host: str, port: int) -> str:
    """Host and port as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class CannotListen(StartupError):
    """The address cannot be listened on."""

    def __init__(self, host: str, port: int, why: OSError) -> None:
        super().__init__(f"cannot listen on {address_of(host, port)}: {why.strerror or why}")


class NoSharedFolder(StartupError):
    """Nothing can be written where temporary files belong, and several workers share one folder."""

    def __init__(self, why: OSError) -> None:
        super().__init__(f"workers: several share a temporary folder, and there is none: {why}")


class BundleMissing(StartupError):
    """There is no bundle at the path."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"no bundle at {path}: it holds no manifest.json; "
            "build one with `python -m model_export export --out DIR`"
        )


class BundleCorrupt(StartupError):
    """A file of the bundle is absent, unreadable or not the one that was exported."""


class BundleIncompatible(StartupError):
    """The bundle is sound but not for this service: what it needs against what there is."""


class ProviderUnavailable(StartupError):
    """The execution provider asked for is not there; there is no silent fall to the CPU."""

    def __init__(self, asked: str, available: Sequence[str]) -> None:
        super().__init__(
            f"execution provider {asked} is not available, there are: {', '.join(available)}; "
            "install the extra that has it (serve-gpu for CUDA), hand in the GPU with its driver, "
            "or ask for another"
        )


class GoldenMismatch(StartupError):
    """The golden pairs get other logits here than at export: scores could not be trusted."""

    def __init__(
        self, pair: str, worst: float, tolerance: float, n_over: int, n_pairs: int
    ) -> None:
        """Say which pair is off and by how much.

        Args:
            pair: The worst pair, shortened.
            worst: Its largest difference in logit.
            tolerance: What the manifest allows.
            n_over: How many of the pairs are over it.
            n_pairs: How many there are.
        """
        super().__init__(
            f"{n_over} of {n_pairs} golden pairs differ from the export by more than {tolerance:g} "
            f"in logit, the worst by {worst:.4g}: {pair}; the file is damaged, or this machine's "
            "ONNX Runtime computes the model differently"
        )
