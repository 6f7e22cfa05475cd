from __future__ import annotations

from types import SimpleNamespace

import pytest

from model_export.errors import ExportError
from model_export.recipe_ranges import require_at_least, require_rates, require_shares

NAN = float("nan")


def test_numbers_within_their_limits_pass() -> None:
    recipe = SimpleNamespace(epochs=1, decay=0.0, rate=1e-3, none=0.0, whole=1.0)
    require_at_least(recipe, {"epochs": 1, "decay": 0})
    require_rates(recipe, ("rate",))
    require_shares(recipe, ("none", "whole"))


@pytest.mark.parametrize("value", [0, -3, float("inf"), NAN])
def test_what_is_below_its_limit_or_not_finite_is_refused_with_both(value: float) -> None:
    with pytest.raises(ExportError, match=f"^epochs must be at least 1, got {value}$"):
        require_at_least(SimpleNamespace(epochs=value), {"epochs": 1})


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, NAN])
def test_a_learning_rate_lies_between_0_and_1(value: float) -> None:
    with pytest.raises(ExportError, match=f"^rate must be between 0 and 1, got {value}$"):
        require_rates(SimpleNamespace(rate=value), ("rate",))


@pytest.mark.parametrize("value", [-0.1, 1.1, NAN])
def test_a_share_lies_in_0_1(value: float) -> None:
    with pytest.raises(ExportError, match=f"^cut must be in 0-1, got {value}$"):
        require_shares(SimpleNamespace(cut=value), ("cut",))
