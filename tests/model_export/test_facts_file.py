from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from model_export.errors import AdapterMismatch
from model_export.facts_file import FACTS_FILE, read_facts_file, write_facts


@dataclass(frozen=True)
class Facts:
    base: str
    layers: tuple[int, ...]


def parsed(fields: Mapping[str, Any]) -> Facts:
    return Facts(str(fields["base"]), tuple(fields["layers"]))


def refusal(path: Path, why: Exception) -> AdapterMismatch:
    return AdapterMismatch(f"{path}: {why!r}")


def test_facts_survive_the_way_to_disk_and_back(tmp_path: Path) -> None:
    write_facts(tmp_path, Facts("base", (0, 2)))
    assert read_facts_file(tmp_path, parsed, refusal) == Facts("base", (0, 2))


def test_the_file_does_not_differ_from_run_to_run(tmp_path: Path) -> None:
    write_facts(tmp_path, Facts("base", ()))
    text = (tmp_path / FACTS_FILE).read_text(encoding="utf-8")
    assert text == json.dumps({"base": "base", "layers": []}, indent=2) + "\n"


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"base": "b", "layers": 1}'])
def test_what_is_missing_or_no_facts_is_refused_in_the_callers_words(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / FACTS_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(AdapterMismatch, match=FACTS_FILE):
        read_facts_file(tmp_path, parsed, refusal)
