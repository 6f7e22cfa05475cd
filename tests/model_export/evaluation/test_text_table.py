from __future__ import annotations

from typing import Any

from model_export.evaluation.text_table import table, text_of


def estimate(value: float | None, low: float | None = None, high: float | None = None) -> Any:  # noqa: ANN401
    return {"value": value, "low": low, "high": high}


def document(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    names = ("auc", "ndcg", "mrr", "map", "average_precision")
    ranking = {name: estimate(0.8765, 0.8, 0.9) for name in names}
    probability = {n: estimate(0.1234) for n in ("calibration_error", "brier", "log_loss")}
    none = {name: estimate(None) for name in names}
    part = {
        "group": "source", "name": "shop", "n_pairs": 40, "n_queries": 4, "n_relevant": 3,
        "is_small": True, "figures": [{"auc": estimate(0.7), "calibration_error": estimate(0.9)},
                                      {"auc": estimate(0.6)}],
    }  # fmt: skip
    return {
        "options": {"places": 5, "n_resamples": 200, "seed": 3, "confidence": 0.95},
        "pairs": {"n_pairs": 40, "n_relevant": 3, "n_queries": 4, "n_queries_with_both_classes": 2,
                  "n_soft_labels": 0},
        "models": [
            {"name": "mine", "kind": "bundle", "figures": {**ranking, **probability},
             "difference_from_first": {}},
            {"name": "word overlap", "kind": "baseline", "figures": {**none, "auc": estimate(0.5)},
             "difference_from_first": {"auc": estimate(-0.3, -0.4, -0.1),
                                       "mrr": estimate(-0.1, -0.2, 0.1)}},
        ],
        "slices": [part, {**part, "name": "large", "is_small": False}],
        **changes,
    }  # fmt: skip


def lines_with(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_each_model_is_a_row_with_its_intervals_and_a_baseline_claims_no_probability() -> None:
    text = text_of(document())
    assert "NDCG@5" in text
    ranking, probability = lines_with(text, "mine  ")[:2]
    assert ranking.count("0.876 [0.800, 0.900]") == 4 + 1
    assert probability.split() == ["mine", "0.123", "0.123", "0.123"]
    assert lines_with(text, "word overlap")[0].split()[2:] == ["0.500", "–", "–", "–", "–"]  # noqa: RUF001
    assert len(lines_with(text, "word overlap")) == 2, "a row of figures and one of differences"


def test_only_differences_beyond_chance_are_marked() -> None:
    shown = lines_with(text_of(document()), "word overlap")[1]
    assert "−0.300 [−0.400, −0.100]*" in shown  # noqa: RUF001
    assert "−0.100 [−0.200, +0.100] " in shown  # noqa: RUF001


def test_small_slices_are_marked_and_their_calibration_error_is_not_shown() -> None:
    text = text_of(document())
    assert lines_with(text, "source: shop")[0].split()[2:] == ["40*", "3", "4", "0.700", "–"]  # noqa: RUF001
    assert lines_with(text, "source: large")[0].split()[2:] == ["40", "3", "4", "0.700", "0.900"]


def test_notes_say_what_limits_the_figures() -> None:
    counts = {**document()["pairs"], "n_queries_with_both_classes": 0, "n_soft_labels": 7}
    text = text_of(document(pairs=counts))
    assert "no query has both kinds" in text
    assert "7 labels are between 0 and 1" in text
    assert "200 resamples of the queries, seed 3" in text
    options = {**document()["options"], "n_resamples": 0}
    assert "no intervals" in text_of(document(options=options))


def test_names_from_files_cannot_act_on_the_terminal() -> None:
    part = {**document()["slices"][0], "name": "a\x1b[2Jb"}
    assert "\x1b" not in text_of(document(slices=[part]))


def test_columns_are_aligned() -> None:
    assert table([["a", "bb"], ["ccc", "d"]]) == "a    bb\nccc   d"
