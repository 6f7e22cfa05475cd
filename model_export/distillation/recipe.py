"""What a distillation is made of: its hyper-parameters, and the layers that the student gets."""

from __future__ import annotations

from dataclasses import dataclass

from model_export.errors import ExportError
from model_export.recipe_ranges import require_at_least, require_rates, require_shares

REPORT_FILE = "distil_report.json"

LAYER_RULES = ("spread", "first", "last")


@dataclass(frozen=True, slots=True)
class DistilRecipe:
    """All hyper-parameters.

    Attributes:
        n_layers: Layers of the student.
        layers: Which of the teacher's it starts from: `spread`, `first`, `last`, or their numbers
            from 0 on with commas between. Spread, because the first layer is the only one
            that was trained to read embeddings, and the last the only one that the head reads.
        lora_rank: Rank of the updates to the linear layers; 0 trains whole matrices.
        train_embeddings: Whether the word vectors learn too. They are most of a small student, its
            pairs hold few of the words, and the teacher's are good already.
        label_weight: Weight of the cross-entropy with the label, where there is one, against the
            squared difference from the teacher's log-odds.
        sampled_pairs: Pairs to sample from products and queries, where products are given.
        pairs_per_query: How many of them share a query.
        pseudo_query_share: Part of them whose query is a span of words of an ad.
        reworded_share: Part of the sampled queries and ads with words swapped for similar ones.
        cut_share: Part of the sampled ads that end after some of their words.
        varied_pairs: Variations to make of the given pairs: words are swapped in half of them on
            either side, whatever `reworded_share` is, and ads cut by `cut_share`.
        hidden_weight: Weight of the distance from the teacher's hidden states. Above 0 the teacher
            runs beside the student, which takes more time than its cached log-odds.
        epochs: Passes over the pairs; the best by the dev pairs is kept.
        learning_rate: Peak, after the warm-up.
        batch_pairs: Pairs per optimizer step.
        warmup_share: Part of the steps in which the learning rate grows.
        weight_decay: AdamW's.
        seed: Of everything random.
    """

    n_layers: int = 3
    layers: str = "spread"
    lora_rank: int = 0
    train_embeddings: bool = False
    label_weight: float = 0.3
    sampled_pairs: int = 16_000
    pairs_per_query: int = 10
    pseudo_query_share: float = 0.5
    reworded_share: float = 0.0
    cut_share: float = 0.0
    varied_pairs: int = 0
    hidden_weight: float = 0.0
    epochs: int = 5
    learning_rate: float = 5e-4
    batch_pairs: int = 32
    warmup_share: float = 0.06
    weight_decay: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that no training can use, before one starts.

        Raises:
            ExportError: Names the field, its value and its limit, or the fields that do not fit.
        """
        least = {
            "n_layers": 1,
            "lora_rank": 0,
            "label_weight": 0,
            "hidden_weight": 0,
            "sampled_pairs": 0,
            "varied_pairs": 0,
            "pairs_per_query": 5,  # so that each kind of pair gets one
            "epochs": 1,
            "batch_pairs": 1,
            "weight_decay": 0,
            "seed": 0,
        }
        require_at_least(self, least)
        require_rates(self, ("learning_rate",))
        require_shares(self, ("pseudo_query_share", "reworded_share", "cut_share", "warmup_share"))
        if self.lora_rank and self.train_embeddings:
            raise ExportError(
                "lora_rank trains updates of low rank and nothing whole, and train_embeddings the "
                "word vectors whole: take one of them"
            )


def chosen_layers(recipe: DistilRecipe, n_teacher_layers: int) -> tuple[int, ...]:
    """Numbers of the teacher's layers that the student starts from, from 0 on, rising.

    `spread` takes the first, the last and even steps between: 0 and 5 of six for two, 0, 2 and 5
    for three. With one layer it is the last.

    Raises:
        ExportError: The teacher does not have them, or the list does not fit `n_layers`.
    """
    n, last = recipe.n_layers, n_teacher_layers - 1
    if n > n_teacher_layers:
        raise ExportError(f"n_layers is {n}, and the teacher has {n_teacher_layers} layers")
    if recipe.layers == "first":
        return tuple(range(n))
    if recipe.layers == "last":
        return tuple(range(n_teacher_layers - n, n_teacher_layers))
    if recipe.layers == "spread":
        return tuple(last * step // (n - 1) for step in range(n)) if n > 1 else (last,)
    try:
        listed = tuple(int(part) for part in recipe.layers.split(","))
    except ValueError as error:
        raise ExportError(
            f"layers must be one of {', '.join(LAYER_RULES)} or numbers with commas between, got "
            f"{recipe.layers!r}"
        ) from error
    if list(listed) != sorted(set(listed)) or listed[0] < 0 or listed[-1] > last:
        raise ExportError(f"layers must be rising numbers in 0-{last}, got {recipe.layers!r}")
    if len(listed) != n:
        raise ExportError(f"layers lists {len(listed)}, and n_layers is {n}")
    return listed
