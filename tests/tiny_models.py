"""Small seeded models, made where they are needed: real folders, real formats, no network.

One writer for all families: two layers, a hidden state of 32, and the family's own kind of
tokenizer (WordPiece, byte-level BPE or Unigram) over the same few words.
"""

from __future__ import annotations

import string
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # both are slow to import, and most tests need neither
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

WORDS = "red blue green shoe bag cheap run fast long lamp chair buy best offer new".split()  # noqa: SIM905  # reads better
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_POSITIONS = 64

# Large enough that pairs get different logits, small enough that rounding is not amplified.
INITIALIZER_RANGE = 0.2

_LETTERS = (*string.ascii_lowercase, *string.digits, *string.punctuation)
_BERT_NAMES = {
    "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]",
    "sep_token": "[SEP]", "mask_token": "[MASK]",
}  # fmt: skip
_ROBERTA_NAMES = {
    "bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>",
    "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>",
}  # fmt: skip


def write_tokenizer(folder: Path) -> None:
    """A WordPiece tokenizer that knows a few words, and spells the others."""
    from transformers import BertTokenizerFast

    vocabulary = [*SPECIAL, *_word_pieces()]
    file = folder / "vocab.txt"
    file.write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab_file=str(file), model_max_length=MAX_POSITIONS).save_pretrained(folder)


def write_bert(folder: Path, n_labels: int = 1, seed: int = 0, **config: object) -> Path:
    """A BERT sequence classifier with weights large enough that pairs get different logits."""
    return write_model(folder, "bert", n_labels, seed, **config)


def write_model(
    folder: Path, family: str, n_labels: int = 1, seed: int = 0, **config: object
) -> Path:
    """A sequence classifier of a family, with its tokenizer.

    Args:
        folder: Where to; made if it is not there.
        family: Key of `FAMILIES`.
        n_labels: Logits.
        seed: Of the weights.
        config: Fields of the family's config in place of the usual ones.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    folder.mkdir(parents=True, exist_ok=True)
    facts = FAMILIES[family]
    tokenizer = facts.write_tokenizer(folder)
    fields: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "num_labels": n_labels,
        **_SIZES,
        **facts.config,
        **config,
    }
    torch.manual_seed(seed)
    made = AutoConfig.for_model(family, **fields)
    with warnings.catch_warnings():  # torch's own, when some families' modules are first imported
        warnings.simplefilter("ignore", DeprecationWarning)
        model = AutoModelForSequenceClassification.from_config(made)
    model.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Family:
    """What the writer must know of a family, and what its graph is like.

    Attributes:
        write_tokenizer: Into a folder; returns it.
        has_segments: The model tells query and ad apart by segment ids.
        n_reserved_positions: Rows of its position table that no token ever gets.
        config: Fields of its config that have other names or values than BERT's.
    """

    write_tokenizer: Callable[[Path], PreTrainedTokenizerBase]
    has_segments: bool = False
    n_reserved_positions: int = 0
    config: dict[str, Any] = field(default_factory=dict)


_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": MAX_POSITIONS,
    "initializer_range": INITIALIZER_RANGE,
}


def _word_pieces() -> list[str]:
    return [*WORDS, *_LETTERS, *(f"##{letter}" for letter in string.ascii_lowercase)]


def _bert_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    write_tokenizer(folder)
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return loaded


def _save(
    backend: Tokenizer, class_name: str, folder: Path, names: dict[str, str], **options: object
) -> PreTrainedTokenizerBase:
    """As transformers saves it: tokenizer.json, and a config that names the class to load."""
    import transformers

    file = folder / "made.json"
    backend.save(str(file))
    cls = getattr(transformers, class_name)
    tokenizer: PreTrainedTokenizerBase = cls(tokenizer_file=str(file), **names, **options)
    file.unlink()
    tokenizer.save_pretrained(folder)
    return tokenizer


def _word_piece_tokenizer(
    class_name: str, names: dict[str, str], pair: str, **options: object
) -> Callable[[Path], PreTrainedTokenizerBase]:
    def write(folder: Path) -> PreTrainedTokenizerBase:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        tokens = [*dict.fromkeys(names.values()), *_word_pieces()]
        vocabulary = {token: number for number, token in enumerate(tokens)}
        backend = Tokenizer(models.WordPiece(vocabulary, unk_token=names["unk_token"]))
        backend.normalizer = normalizers.BertNormalizer(lowercase=True)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        _frame(backend, names, pair)
        return _save(backend, class_name, folder, names, **options)

    return write


def _byte_level_tokenizer(
    class_name: str, names: dict[str, str], pair: str, **options: object
) -> Callable[[Path], PreTrainedTokenizerBase]:
    def write(folder: Path) -> PreTrainedTokenizerBase:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        merges: dict[tuple[str, str], None] = {}
        for word in (*WORDS, *(f"Ġ{word}" for word in WORDS)):
            merges.update({(word[:end], word[end]): None for end in range(1, len(word))})
        tokens = [
            *dict.fromkeys(names.values()),
            *sorted(pre_tokenizers.ByteLevel.alphabet()),
            *dict.fromkeys(left + right for left, right in merges),
        ]
        vocabulary = {token: number for number, token in enumerate(tokens)}
        backend = Tokenizer(models.BPE(vocabulary, list(merges)))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        _frame(backend, names, pair)
        return _save(backend, class_name, folder, names, **options)

    return write


def _unigram_tokenizer(
    class_name: str, names: dict[str, str], pair: str
) -> Callable[[Path], PreTrainedTokenizerBase]:
    def write(folder: Path) -> PreTrainedTokenizerBase:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        special = list(dict.fromkeys(names.values()))
        pieces = [
            *((token, 0.0) for token in special),
            *((f"▁{word}", -3.0) for word in WORDS),
            *((word, -4.0) for word in WORDS),
            *((letter, -9.0) for letter in ("▁", *_LETTERS)),
        ]
        backend = Tokenizer(models.Unigram(pieces, unk_id=special.index(names["unk_token"])))
        backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        _frame(backend, names, pair)
        return _save(backend, class_name, folder, names)  # no limit: the huge number for "none"

    return write


def _frame(backend: Tokenizer, names: dict[str, str], pair: str) -> None:
    from tokenizers import AddedToken
    from tokenizers.processors import TemplateProcessing

    backend.add_special_tokens([AddedToken(name, special=True) for name in set(names.values())])
    ends = [(name, backend.token_to_id(name)) for name in (names["cls_token"], names["sep_token"])]
    single = f"{ends[0][0]} $A {ends[1][0]}"
    backend.post_processor = TemplateProcessing(single=single, pair=pair, special_tokens=ends)


_BERT_PAIR = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
_ROBERTA_PAIR = "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0"
_MPNET_NAMES = {**_ROBERTA_NAMES, "unk_token": "[UNK]"}
_ALBERT_NAMES = {
    "bos_token": "[CLS]", "eos_token": "[SEP]", "pad_token": "<pad>", "unk_token": "<unk>",
    "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
}  # fmt: skip
_DEBERTA_NAMES = {**_BERT_NAMES, "bos_token": "[CLS]", "eos_token": "[SEP]"}
_ROBERTA_POSITIONS = {"max_position_embeddings": MAX_POSITIONS + 2, "type_vocab_size": 1}

FAMILIES = {
    "bert": Family(_bert_tokenizer, has_segments=True),
    "distilbert": Family(
        _word_piece_tokenizer(
            "DistilBertTokenizerFast", _BERT_NAMES, _BERT_PAIR, model_max_length=MAX_POSITIONS
        ),
        config={"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "electra": Family(
        _word_piece_tokenizer("ElectraTokenizerFast", _BERT_NAMES, _BERT_PAIR),
        has_segments=True,
        config={"embedding_size": 24},  # smaller than the hidden state, as in the real one
    ),
    "mpnet": Family(
        _word_piece_tokenizer("MPNetTokenizerFast", _MPNET_NAMES, _ROBERTA_PAIR),
        n_reserved_positions=2,
        config={"max_position_embeddings": MAX_POSITIONS + 2, "initializer_range": 0.25},
    ),
    "roberta": Family(
        _byte_level_tokenizer("RobertaTokenizerFast", _ROBERTA_NAMES, _ROBERTA_PAIR),
        n_reserved_positions=2,
        config=_ROBERTA_POSITIONS,
    ),
    "xlm-roberta": Family(
        _unigram_tokenizer("XLMRobertaTokenizerFast", _ROBERTA_NAMES, _ROBERTA_PAIR),
        n_reserved_positions=2,
        config=_ROBERTA_POSITIONS,
    ),
    "camembert": Family(
        _unigram_tokenizer("CamembertTokenizerFast", _ROBERTA_NAMES, _ROBERTA_PAIR),
        n_reserved_positions=2,
        config=_ROBERTA_POSITIONS,
    ),
    "albert": Family(
        _unigram_tokenizer("AlbertTokenizerFast", _ALBERT_NAMES, _BERT_PAIR),
        has_segments=True,
        config={"embedding_size": 24},
    ),
    "deberta-v2": Family(
        _unigram_tokenizer("DebertaV2TokenizerFast", _DEBERTA_NAMES, _BERT_PAIR),
        # As in the published v3 models, which have no segments.
        config={
            "type_vocab_size": 0, "relative_attention": True, "position_buckets": 16,
            "pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm", "share_att_key": True,
            "position_biased_input": False, "max_relative_positions": -1,
            "pooler_hidden_size": 32,
        },
    ),
    "modernbert": Family(
        _byte_level_tokenizer(
            "PreTrainedTokenizerFast", _BERT_NAMES, "[CLS] $A [SEP] $B [SEP]",
            model_input_names=["input_ids", "attention_mask"],
        ),
        config={
            "num_hidden_layers": 4, "global_attn_every_n_layers": 3, "local_attention": 16,
            "initializer_cutoff_factor": 2.0,
        },
    ),
}  # fmt: skip
