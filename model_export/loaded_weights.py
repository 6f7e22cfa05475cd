"""Whether a loaded model has its folder's weights, or what transformers filled in at random."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from model_export.errors import UnsupportedCheckpoint

CLASSIFIER_PREFIXES = ("classifier.",)
"""Of BertForSequenceClassification's head, which reads a pooler that has to be there."""


def refuse_random_weights(
    loading_info: Mapping[str, Collection[str]], name: str, allowed_prefixes: tuple[str, ...]
) -> None:
    """Go on only if every weight outside the allowed ones was found, with the shape wanted.

    transformers only warns of a weight that the folder lacks or, with `ignore_mismatched_sizes`,
    has in another shape: it starts that one at random.

    Args:
        loading_info: As `from_pretrained(..., output_loading_info=True)` gives it.
        name: Of what was loaded, to begin the message with, as in "base model roberta-base".
        allowed_prefixes: Of weights, by their names in the loaded model, that may start at random:
            a head that is yet to be trained, a pooler that nothing reads.

    Raises:
        UnsupportedCheckpoint: Some weights are random; names the first of them and their number.
    """
    random = sorted(
        key
        for key in (*loading_info["missing_keys"], *loading_info["mismatched_keys"])
        if not key.startswith(allowed_prefixes)
    )
    if random:
        more = f" and {len(random) - 1} more" if len(random) > 1 else ""
        raise UnsupportedCheckpoint(
            f"{name} has no weights that fit {random[0]}{more}, which would start at random: its "
            "weights are of another architecture than the one they are read as, or not all there; "
            "check the folder, or take another"
        )


def head_prefixes(model: Any) -> tuple[str, ...]:  # noqa: ANN401  # untyped library
    """Of a transformers model with a head, what weights behind its encoder's layers begin with.

    Poolers are among them: most were trained on another task, if at all.
    """
    encoder = model.base_model_prefix
    heads = (f"{name}." for name, _ in model.named_children() if name != encoder)
    return (*heads, f"{encoder}.pooler.")
