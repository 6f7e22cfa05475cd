"""The pages name everything that a user can set, get or scrape, and lead where they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from service.api.error_handlers import ADMIN_STATUS_OF, STATUS_OF
from service.caching.fixed_cache import FixedCache
from service.metrics.all_metrics import Metrics
from service.metrics.shadow_metrics import ShadowMetrics
from service.settings import Settings

ROOT = Path(__file__).parents[1]
FOLDERS = ("service", "model_export", "deploy", "tests")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes it of them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_stands_in_the_reference_with_its_default(name: str) -> None:
    default = Settings.model_fields[name].default
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    assert f"| `{name}` | {shown} |" in read("service/README.md")


def test_every_error_stands_in_the_readme_with_its_status() -> None:
    readme = read("README.md")
    for error, status in {**STATUS_OF, **ADMIN_STATUS_OF}.items():
        assert f"| `{error.code}` | {status} |" in readme


def test_every_metric_stands_in_the_operator_s_page() -> None:
    registry = CollectorRegistry()
    Metrics(registry, [], []).model.watch_caches(FixedCache(0, 1), FixedCache(0, 1))
    ShadowMetrics(registry)
    names = [family.name for family in registry.collect() if family.name.startswith("adrel_")]
    assert len(names) > 10
    page = read("deploy/OPERATING.md")
    assert [name for name in names if name not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8"))
    lost = []
    for link in links:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_pages_are_looked_through_for_links() -> None:
    assert len(PAGES) > 15
    assert "post-v1explain" in anchors(ROOT / "service" / "README.md")
