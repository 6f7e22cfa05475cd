"""What a run of pre-training is made of."""

from __future__ import annotations

from dataclasses import dataclass

from model_export.errors import ExportError

REPORT_FILE = "pretraining_report.json"

MIN_TOKENS = 8


@dataclass(frozen=True, slots=True)
class PretrainRecipe:
    """Hyper-parameters. The rate of masks is BERT's (Devlin et al. 2019, 3.1).

    Attributes:
        mask_share: Part of the positions that the model must guess. Of them 80 % become the mask
            token, 10 % some other token, and 10 % stay as they are.
        next_sentence: Whether to learn also if the description is the title's own (Devlin et al.
            2019, 3.1, task 2; half of them are another ad's).
        held_out_share: Part of the texts that are only judged on.
        epochs: Passes over the texts, each with masks of its own.
        learning_rate: Its peak.
        batch_texts: Texts per step.
        warmup_share: Part of the steps in which the learning rate grows.
        weight_decay: AdamW's.
        max_text_tokens: Texts are cut to so many tokens.
        seed: Of everything random.
    """

    mask_share: float = 0.15
    next_sentence: bool = False
    held_out_share: float = 0.05
    epochs: int = 3
    learning_rate: float = 5e-5
    batch_texts: int = 32
    warmup_share: float = 0.1
    weight_decay: float = 0.01
    max_text_tokens: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no training can use, before one starts.

        Raises:
            ExportError: Names the option and its limits.
        """
        for name, low, high in (
            ("mask_share", 0.01, 0.5),
            ("held_out_share", 0.001, 0.5),
            ("epochs", 1, 1000),
            ("learning_rate", 1e-8, 1),
            ("batch_texts", 1, 4096),
            ("warmup_share", 0, 1),
            ("weight_decay", 0, 1),
            ("max_text_tokens", MIN_TOKENS, 512),
            ("seed", 0, 2**32 - 1),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                option = name.replace("_", "-")
                raise ExportError(f"--{option} is {value:g}, which is not in {low:g} to {high:g}")
