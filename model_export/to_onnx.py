"""From a torch model to a fused fp32 graph: optimum converts, ONNX Runtime's optimizer fuses."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from model_export.errors import UnsupportedCheckpoint

if TYPE_CHECKING:  # torch and its kin are slow to import
    import onnx

OPSET = 18  # the lowest that optimum recommends; ONNX Runtime knows it since 1.14

CONTRIB_DOMAIN = "com.microsoft"  # where the fused operators live

# Their progress chatter; what matters of it comes back as an exception or as a parity figure.
_CHATTY_LOGGERS = ("optimum", "onnxruntime.transformers", "fusion_base", "onnx_model", "root")


def convert(model: Any, tokenizer: Any) -> onnx.ModelProto:  # noqa: ANN401  # untyped libraries
    """The model as a fused fp32 graph.

    Multi-head attention stays apart from its projections, so that these can be quantized.

    Args:
        model: A transformers sequence-classification model in eval mode.
        tokenizer: Its tokenizer; says which inputs the graph gets.

    Raises:
        UnsupportedCheckpoint: optimum cannot convert this architecture.
    """
    from optimum.exporters.onnx import onnx_export_from_model

    with TemporaryDirectory() as folder, _quiet():
        try:
            onnx_export_from_model(
                model,
                Path(folder),
                task="text-classification",
                opset=OPSET,
                do_validation=False,  # parity does it, on more than one dummy input
                preprocessors=[tokenizer],
                device="cpu",
            )
        except (ValueError, RuntimeError, KeyError) as error:
            kind = type(model).__name__
            raise UnsupportedCheckpoint(f"{kind} cannot be converted to ONNX: {error}") from error
        return _fuse(Path(folder) / "model.onnx", model.config)


def _fuse(path: Path, config: Any) -> onnx.ModelProto:  # noqa: ANN401
    import onnx
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    options = FusionOptions("bert")
    options.use_multi_head_attention = True
    optimized = optimize_model(
        str(path),
        "bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        optimization_options=options,
        opt_level=0,  # only graph fusions: the rest is the session's, on the machine that serves
    )
    graph: onnx.ModelProto = optimized.model
    if not any(opset.domain == CONTRIB_DOMAIN for opset in graph.opset_import):
        graph.opset_import.append(onnx.helper.make_opsetid(CONTRIB_DOMAIN, 1))
    return graph


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    levels = {name: logging.getLogger(name).level for name in _CHATTY_LOGGERS}
    try:
        for name in levels:
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
