"""Numbers of a recipe that no training can use are refused before one starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model_export.errors import ExportError


def require_at_least(recipe: object, least: Mapping[str, float]) -> None:
    """Each field must be finite and not below its limit.

    Args:
        recipe: Has the fields.
        least: Limits by name of the field.

    Raises:
        ExportError: Names the field, its value and its limit.
    """
    for name, limit in least.items():
        value = getattr(recipe, name)
        if not limit <= value < float("inf"):
            raise ExportError(f"{name} must be at least {limit}, got {value}")


def require_rates(recipe: object, names: Iterable[str]) -> None:
    """Each field must be a learning rate: over 0 and under 1.

    Args:
        recipe: Has the fields.
        names: Of the fields.

    Raises:
        ExportError: Names the field and its value.
    """
    for name in names:
        if not 0 < getattr(recipe, name) < 1:
            raise ExportError(f"{name} must be between 0 and 1, got {getattr(recipe, name)}")


def require_shares(recipe: object, names: Iterable[str]) -> None:
    """Each field must be a share: in 0-1.

    Args:
        recipe: Has the fields.
        names: Of the fields.

    Raises:
        ExportError: Names the field and its value.
    """
    for name in names:
        if not 0 <= getattr(recipe, name) <= 1:
            raise ExportError(f"{name} must be in 0-1, got {getattr(recipe, name)}")
