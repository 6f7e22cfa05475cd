"""The README names everything that a user can set, get or scrape, with the right defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from service.api.error_handlers import ADMIN_STATUS_OF, STATUS_OF
from service.caching.fixed_cache import FixedCache
from service.metrics.all_metrics import Metrics
from service.metrics.shadow_metrics import ShadowMetrics
from service.settings import Settings

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_stands_in_the_readme_with_its_default(name: str) -> None:
    default = Settings.model_fields[name].default
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    assert f"| `{name}` | {shown} |" in README


def test_every_error_stands_in_the_readme_with_its_status() -> None:
    for error, status in {**STATUS_OF, **ADMIN_STATUS_OF}.items():
        assert f"| `{error.code}` | {status} |" in README


def test_every_metric_stands_in_the_readme() -> None:
    registry = CollectorRegistry()
    Metrics(registry, [], []).model.watch_caches(FixedCache(0, 1), FixedCache(0, 1))
    ShadowMetrics(registry)
    names = [family.name for family in registry.collect() if family.name.startswith("adrel_")]
    assert len(names) > 10
    assert [name for name in names if name not in README] == []
