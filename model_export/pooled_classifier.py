"""A linear head on pooled states of an encoder, and its folder.

    config.json, model.safetensors   the encoder, as transformers' AutoModel writes and reads it;
                                     the config has the names of the labels
    adrel_head.json                  what the head reads: {"pooling": "cls" | "mean" | "cat4"}
    adrel_head.safetensors           the head: weight (k, width) and bias (k,)

Every encoder of transformers can have such a head, and no folder brings code of its own.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn
from transformers import MODEL_MAPPING, AutoModel
from transformers.modeling_outputs import SequenceClassifierOutput

from model_export.checkpoint_config import HEAD_FILE
from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers, refusing
from model_export.sentence_embedding import CAT_LAYERS, Pooling, pool

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

HEAD_WEIGHTS_FILE = "adrel_head.safetensors"


class PooledClassifier(nn.Module):
    """An encoder, one vector per pair by `pooling`, and a linear map to the config's labels."""

    def __init__(self, encoder: PreTrainedModel, pooling: Pooling) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.config = encoder.config
        self._n_layers = min(CAT_LAYERS, encoder.config.num_hidden_layers)
        width = encoder.config.hidden_size * (self._n_layers if pooling == "cat4" else 1)
        self.head = nn.Linear(width, encoder.config.num_labels)

    def forward(
        self,
        input_ids: torch.Tensor,  # (b, t)
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """(b, k) logits."""
        pooled = self.pooled(input_ids, attention_mask, token_type_ids)
        return SequenceClassifierOutput(logits=self.head(pooled))

    def pooled(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(b, width): what the head reads."""
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        output = self.encoder(
            input_ids=input_ids,
            attention_mask=attention_mask,
            output_hidden_states=self.pooling == "cat4",
            return_dict=True,
            **segments,
        )
        states = output.last_hidden_state
        layers = output.hidden_states[-self._n_layers :] if self.pooling == "cat4" else (states,)
        return pool(layers, attention_mask.unsqueeze(-1).to(states.dtype), self.pooling)

    @property
    def base_model(self) -> PreTrainedModel:
        """The encoder, as transformers' own models name it."""
        return self.encoder

    def get_input_embeddings(self) -> nn.Module:
        """The word vectors, as transformers' own models name them."""
        found: nn.Module = self.encoder.get_input_embeddings()
        return found

    def save_pretrained(self, folder: Path) -> None:
        """Write the encoder and the head, see the module."""
        self.encoder.save_pretrained(folder)
        text = json.dumps({"pooling": self.pooling})
        (folder / HEAD_FILE).write_text(text + "\n", encoding="utf-8")
        state = {name: value.cpu().contiguous() for name, value in self.head.state_dict().items()}
        (folder / HEAD_WEIGHTS_FILE).write_bytes(save(state, metadata={"format": "pt"}))


def load_encoder(folder: Path, config: PretrainedConfig) -> PreTrainedModel:
    """The bare encoder of a folder; heads and poolers that it may bring are left out.

    Raises:
        UnsupportedCheckpoint: It cannot be loaded, or lacks weights of the encoder.
    """
    # A pooler that no head reads would be random numbers in the file.
    kind: Any = MODEL_MAPPING[type(config)]
    takes = inspect.signature(kind).parameters
    options = {"add_pooling_layer": False} if "add_pooling_layer" in takes else {}
    with refusing(), quiet_transformers():
        encoder, info = AutoModel.from_pretrained(
            folder,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    if info["missing_keys"]:
        raise UnsupportedCheckpoint(
            f"has no weights for {sorted(info['missing_keys'])[:3]} of its encoder"
        )
    found: PreTrainedModel = encoder
    return found


def load_pooled(folder: Path, config: PretrainedConfig) -> PooledClassifier:
    """The classifier of a folder, in eval mode, fp32.

    Args:
        folder: As `PooledClassifier.save_pretrained` wrote it.
        config: Of the encoder, with the labels.

    Raises:
        UnsupportedCheckpoint: The head or the encoder cannot be read, or they do not fit.
    """
    model = PooledClassifier(load_encoder(folder, config), _read_pooling(folder))
    try:
        model.head.load_state_dict(load_file(folder / HEAD_WEIGHTS_FILE))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UnsupportedCheckpoint(
            f"has a {HEAD_WEIGHTS_FILE} that is not a head on its encoder: {reason}"
        ) from error
    return model.eval().float()


def _read_pooling(folder: Path) -> Pooling:
    try:
        stated = json.loads((folder / HEAD_FILE).read_text(encoding="utf-8"))["pooling"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnsupportedCheckpoint(f"has a {HEAD_FILE} without a pooling: {error!r}") from error
    for pooling in get_args(Pooling):
        if pooling == stated:
            known: Pooling = pooling
            return known
    raise UnsupportedCheckpoint(
        f"has a {HEAD_FILE} with the pooling {stated!r}; known: {', '.join(get_args(Pooling))}"
    )
