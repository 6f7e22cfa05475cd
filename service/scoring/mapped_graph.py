"""One copy of the weights for several processes of a machine."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path

from service.scoring.onnx_model import write_mapped
from service.startup_errors import BundleIncompatible

logger = logging.getLogger(__name__)

GRAPH = "model.onnx"


def mapped_graph(model: Path, sha256: str, folder: Path) -> Path:
    """The graph in a form whose weights all who open it share; written by the first who asks.

    Args:
        model: The bundle's, verified.
        sha256: Of that file.
        folder: Where the forms are; nobody else can write there.

    Returns:
        The graph to open: the bundle's own where another form cannot be written.
    """
    home = folder / sha256
    if (home / GRAPH).is_file():
        return home / GRAPH
    try:
        fresh = Path(tempfile.mkdtemp(dir=folder))
        try:
            write_mapped(model, fresh / GRAPH)
            fresh.rename(home)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    except (OSError, BundleIncompatible) as error:
        if not (home / GRAPH).is_file():  # another process was not quicker either
            logger.warning("the weights are not shared", extra={"why": str(error)})
            return model
    return home / GRAPH
