from __future__ import annotations

import numpy as np

from model_export.distillation.rewording import N_NEIGHBOURS, Rewording

FRUIT = [f"fruit{letter}" for letter in "abcdefghijklmnop"]  # sixteen, each with fifteen others
TOOLS = [f"tool{letter}" for letter in "abcdefghijklmnop"]
VOCABULARY = {token: number for number, token in enumerate([*FRUIT, *TOOLS, "##x", "15", "of"])}


def made() -> Rewording:
    """Fruits point one way, tools another, all else between."""
    noise = np.random.default_rng(0).normal(size=(len(VOCABULARY), 2)) * 0.01
    centres = np.array([[1, 0]] * 16 + [[0, 1]] * 16 + [[1, 1]] * 3)
    return Rewording(VOCABULARY, (centres + noise).astype(np.float32))


def reword(text: str, seed: int = 0) -> str:
    rewording = made()
    rewording.learn([text])
    return rewording.reword(text, np.random.default_rng(seed))


def test_a_word_becomes_one_of_its_nearest_and_never_itself() -> None:
    got = {reword("fruita", seed) for seed in range(200)}
    assert got == set(FRUIT) - {"fruita"}
    assert len(got) == N_NEIGHBOURS


def test_at_least_one_word_is_swapped_and_most_stay() -> None:
    text = " ".join(FRUIT)
    shares = []
    for seed in range(100):
        pairs = zip(reword(text, seed).split(), FRUIT, strict=True)
        shares.append(sum(new != old for new, old in pairs))
    assert min(shares) >= 1
    assert 0.25 < np.mean(shares) / len(FRUIT) < 0.35


def test_what_is_no_whole_word_of_the_vocabulary_stays() -> None:
    text = "15 of unknown-word ##x"
    assert reword(text) == text
    changed = reword(f"{text} ToolA")
    assert changed.startswith(f"{text} tool")


def test_the_random_state_decides() -> None:
    text = " ".join(TOOLS)
    assert reword(text, 1) == reword(text, 1) != reword(text, 2)
