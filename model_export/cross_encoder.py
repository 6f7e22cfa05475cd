"""What sentence-transformers adds to a folder of transformers, and what of it changes a score.

Read as plain data: its files name classes by dotted paths, and none is ever imported.
Its formats so far: `sbert_ce_default_activation_function` in `config.json` (before 4.0), a
`sentence_transformers` table there (4.0), `config_sentence_transformers.json` beside it (5.4).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers

ENCODER_MODULE = "Transformer"
LONGEST_NAME_CHARS = 100  # of an activation, in a message


@dataclass(frozen=True, slots=True)
class CrossEncoderFacts:
    """What is there beside the model itself.

    Attributes:
        activation: Dotted name of what sentence-transformers would apply to the logits.
        max_length_tokens: Longest pair that it would encode; None when it does not say.
    """

    activation: str | None = None
    max_length_tokens: int | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user of the export."""
        if self.activation is None:
            return ()
        return (
            f"its config names the activation {self.activation}, which is not run: scores come "
            "from the raw logits, through a sigmoid and the score calibration",
        )


def read_cross_encoder(reference: str, config: dict[str, Any]) -> CrossEncoderFacts:
    """The facts of sentence-transformers in a folder or a hub model; empty where it left none.

    Args:
        reference: Folder or hub id.
        config: Content of its `config.json`.

    Raises:
        UnsupportedCheckpoint: It would do more with a pair than run the classifier: modules after
            the encoder, or a prompt before the query. The message goes on after "checkpoint NAME".
    """
    own = _table(_read_json(reference, "config_sentence_transformers.json"))
    module = _table(_read_json(reference, "sentence_bert_config.json"))
    _require_bare_encoder(_read_json(reference, "modules.json"))
    _require_no_prompt(own)
    older = _table(config.get("sentence_transformers"))
    oldest = config.get("sbert_ce_default_activation_function")
    activation = own.get("activation_fn") or older.get("activation_fn") or oldest
    lengths = [
        table.get(key) for table in (own, module, older) for key in ("max_length", "max_seq_length")
    ]
    return CrossEncoderFacts(
        activation=str(activation)[:LONGEST_NAME_CHARS] if activation else None,
        max_length_tokens=next((n for n in lengths if type(n) is int and n > 0), None),
    )


def _require_bare_encoder(modules: Any) -> None:  # noqa: ANN401  # whatever the file holds
    listed = modules if isinstance(modules, list) else []
    names = [str(_table(module).get("type")).rpartition(".")[2] for module in listed]
    others = [name for name in names if name != ENCODER_MODULE]
    if others:
        raise UnsupportedCheckpoint(
            f"has the modules {others} after its encoder (modules.json); only a classifier whose "
            "head is part of the model can be exported"
        )


def _require_no_prompt(own: dict[str, Any]) -> None:
    name = own.get("default_prompt_name")
    if name is not None and _table(own.get("prompts")).get(str(name)):
        raise UnsupportedCheckpoint(
            f"puts its prompt {str(name)!r} before every text (config_sentence_transformers.json), "
            "which the service does not; train without a prompt"
        )


def _table(value: Any) -> dict[str, Any]:  # noqa: ANN401  # whatever the file holds
    return value if isinstance(value, dict) else {}


def _read_json(reference: str, name: str) -> Any:  # noqa: ANN401  # whatever the file holds
    from transformers.utils.hub import cached_file

    with quiet_transformers():
        path = cached_file(
            reference,
            name,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  # the library gives a str
            return json.load(file)
    except ValueError as error:
        raise UnsupportedCheckpoint(f"cannot be loaded: {name} is not JSON: {error}") from error
