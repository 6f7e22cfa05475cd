"""From a torch model to a fused fp32 graph: optimum converts, ONNX Runtime's optimizer fuses."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from model_export.errors import UnsupportedCheckpoint
from model_export.graph_editor import CONTRIB_DOMAIN
from model_export.token_sums import sum_tokens_in_order
from service.scoring.onnx_model import IDS, TYPE_IDS

if TYPE_CHECKING:  # torch and its kin are slow to import
    import onnx

OPSET = 18  # the lowest that optimum recommends; ONNX Runtime knows it since 1.14

TASK = "text-classification"

MAX_GRAPH_BYTES = 2**31 - 1  # of one protobuf message

# Their progress chatter; what matters of it comes back as an exception or as a parity figure.
_CHATTY_LOGGERS = ("optimum", "onnxruntime.transformers", "fusion_base", "onnx_model", "root")


def takes_segments(model: Any, tokenizer: Any) -> bool:  # noqa: ANN401  # untyped libraries
    """Whether the two sides of a pair are told apart by segment ids.

    They are where the model has an embedding for more than one segment and its tokenizer's config
    lists them; transformers feeds zeros where it does not, in training too, and so do we. RoBERTa
    and its kin take the argument and have only one segment, DeBERTa v3 has none.
    """
    n_segments = getattr(model.config, "type_vocab_size", 0) or 0
    takes = TYPE_IDS in inspect.signature(model.forward).parameters
    return n_segments > 1 and takes and TYPE_IDS in tokenizer.model_input_names


def convert(
    model: Any,  # noqa: ANN401  # untyped libraries
    tokenizer: Any,  # noqa: ANN401  # as above
    *,
    for_gpu: bool = False,
) -> onnx.ModelProto:
    """The model as a fused fp32 graph.

    For a CPU, attention stays apart from its projections, so that these can be quantized, and
    normalizations from what they follow: ONNX Runtime's fused one took five times as long here as
    an addition and a normalization. For a GPU all is fused.

    Args:
        model: A transformers sequence-classification model in eval mode.
        tokenizer: Its tokenizer.
        for_gpu: Fuse for ONNX Runtime's CUDA kernels.

    Raises:
        UnsupportedCheckpoint: optimum cannot convert this architecture, or the graph would be
            larger than a graph can be.
    """
    from optimum.exporters.onnx import export

    kind = type(model).__name__
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    if n_bytes > MAX_GRAPH_BYTES:
        raise UnsupportedCheckpoint(
            f"{kind} has {n_bytes / 1e9:.1f} GB of weights in fp32, and an ONNX file holds at most "
            f"{MAX_GRAPH_BYTES / 1e9:.1f} GB"
        )
    with TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "model.onnx"
        try:
            config = _export_config(model, tokenizer)
            with _without_branches(model):
                export(model, config, path, opset=OPSET, device="cpu")
            graph = _fuse(path, model.config, for_gpu=for_gpu)
            sum_tokens_in_order(graph.graph)
        except Exception as error:  # tracers and rewriters can fail in ways that raise anything
            raise UnsupportedCheckpoint(f"{kind} cannot be converted to ONNX: {error}") from error
    return graph


@contextlib.contextmanager
def _without_branches(model: Any) -> Iterator[None]:  # noqa: ANN401  # untyped library
    """Leave out a branch that DeBERTa's attention never takes, and that a tracer keeps.

    It makes new relative positions where there are more keys than queries, as in a decoder. In an
    encoder there are not, and a graph without `If` is one that rewriters can see through.
    """
    module = sys.modules[type(model.base_model).__module__]
    original = getattr(module, "build_rpos", None)
    if original is None:
        yield
        return
    module.build_rpos = lambda _query, _key, positions, *_: positions  # type: ignore[attr-defined]  # a module of a library
    try:
        yield
    finally:
        module.build_rpos = original  # type: ignore[attr-defined]  # as above


def _export_config(model: Any, tokenizer: Any) -> Any:  # noqa: ANN401  # untyped libraries
    """How optimum describes the family, with segment ids exactly where the model has any.

    optimum gives them to a family as a whole (BERT always, RoBERTa never), but a BERT can have
    one segment and a RoBERTa two.
    """
    from optimum.exporters.tasks import TasksManager

    constructor = TasksManager.get_exporter_config_constructor(
        "onnx", model=model, task=TASK, library_name="transformers"
    )
    config = constructor(model.config, preprocessors=[tokenizer])
    inputs = {name: axes for name, axes in config.inputs.items() if name != TYPE_IDS}
    if takes_segments(model, tokenizer):
        inputs[TYPE_IDS] = inputs[IDS]
    # `inputs` is a property without a setter, so the instance gets a class of its own.
    config.__class__ = type(type(config).__name__, (type(config),), {"inputs": inputs})
    return config


def _fuse(path: Path, config: Any, *, for_gpu: bool) -> onnx.ModelProto:  # noqa: ANN401
    """ONNX Runtime's fusions for encoders, which rewrite only the patterns that they know.

    So they are safe for every family: all of them have the layer normalizations and activations,
    most the attention. DeBERTa's relative attention and ModernBERT's rotary one stay as they are.
    """
    import onnx
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    options = FusionOptions("bert")
    if not for_gpu:
        options.use_multi_head_attention = True
        options.enable_embed_layer_norm = False
        options.enable_skip_layer_norm = False
        options.enable_bias_skip_layer_norm = False
    optimized = optimize_model(
        str(path),
        "bert",
        # Through transformers' map of names (DistilBERT says n_heads, dim); 0 is "find out".
        num_heads=getattr(config, "num_attention_heads", 0),
        hidden_size=getattr(config, "hidden_size", 0),
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
