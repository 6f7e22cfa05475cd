"""Small seeded models, made where they are needed: real folders, real formats, no network."""

from __future__ import annotations

import string
from pathlib import Path

WORDS = "red blue green shoe bag cheap run fast long lamp chair buy best offer new".split()  # noqa: SIM905  # reads better
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_POSITIONS = 64


def write_tokenizer(folder: Path) -> None:
    """A WordPiece tokenizer that knows a few words, and spells the others."""
    from transformers import BertTokenizerFast

    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    vocabulary = [*SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in string.ascii_lowercase)]
    file = folder / "vocab.txt"
    file.write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab_file=str(file), model_max_length=MAX_POSITIONS).save_pretrained(folder)


def write_bert(folder: Path, n_labels: int = 1, seed: int = 0, **config: object) -> Path:
    """A BERT sequence classifier with weights large enough that pairs get different logits."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    torch.manual_seed(seed)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len((folder / "vocab.txt").read_text(encoding="utf-8").split()),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=MAX_POSITIONS,
            initializer_range=0.2,
            num_labels=n_labels,
            **config,
        )
    )
    model.save_pretrained(folder)
    return folder
