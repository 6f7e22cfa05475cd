"""`adrel.json` beside the weights of a checkpoint trained here: what its config cannot say.

Tokenizers state a length too, but of what the encoder has positions for: 512 for almost every BERT,
whatever it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_export.errors import UnsupportedCheckpoint
from model_export.facts_file import FACTS_FILE, read_facts_file


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """What a user of the checkpoint must know.

    Attributes:
        max_pair_tokens: Tokens kept per pair in training, special ones included.
    """

    max_pair_tokens: int


def read_checkpoint_facts(folder: Path) -> CheckpointFacts | None:
    """The facts recorded with a checkpoint; None for one that was not trained here.

    Raises:
        UnsupportedCheckpoint: The file says something else. The message goes on after
            "checkpoint NAME".
    """
    if not (folder / FACTS_FILE).is_file():
        return None
    return read_facts_file(folder, _parsed, _not_facts)


def _parsed(fields: Mapping[str, Any]) -> CheckpointFacts:
    return CheckpointFacts(max_pair_tokens=int(fields["max_pair_tokens"]))


def _not_facts(_: Path, why: Exception) -> UnsupportedCheckpoint:
    return UnsupportedCheckpoint(
        f"has an {FACTS_FILE} that does not say on how long pairs it was trained: {why!r}"
    )
