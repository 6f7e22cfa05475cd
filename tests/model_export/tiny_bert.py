"""Seeded toy models for tests: two layers, a vocabulary of a few words, made in milliseconds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel, BertTokenizerFast

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ("red", "blue", "green", "shoes", "lamp", "chair", "sofa", "desk", "running", "office")


def write_tiny_base(folder: Path, hidden_size: int = 32, n_layers: int = 2) -> Path:
    """A base model folder as sentence-transformers ships it: an encoder without a head."""
    folder.mkdir(parents=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary_file = folder / "vocab.txt"
    vocabulary_file.write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab_file=str(vocabulary_file)).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden_size,
        num_hidden_layers=n_layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden_size,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def write_other_base(folder: Path) -> Path:
    """A base of the same shape, with another hash."""
    write_tiny_base(folder)
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] += 1
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_pairs(path: Path, n_repeats: int = 1) -> Path:
    """60 pairs (times `n_repeats`) in which shoes and lamps are relevant, whatever the query."""
    nouns = WORDS[3:8]
    rows = [
        {
            "query": f"{color} {wanted}",
            "title": f"office {offered}",
            "description": "running",
            "label": int(offered in ("shoes", "lamp")),
        }
        for color in WORDS[:2]
        for wanted in nouns
        for offered in (*nouns, wanted)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows * n_repeats), encoding="utf-8")
    return path


def write_graded_pairs(path: Path) -> Path:
    """50 pairs of 10 queries: shoes and lamps have grade 2, chairs 1, sofas and desks 0."""
    grades = {"shoes": 2, "lamp": 2, "chair": 1, "sofa": 0, "desk": 0}
    rows = [
        {
            "query": f"{color} {wanted}",
            "title": f"office {offered}",
            "grade": grade,
            "max_grade": 2,
            "label": int(grade == 2),
        }
        for color in WORDS[:2]
        for wanted in grades
        for offered, grade in grades.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
