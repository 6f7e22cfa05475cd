from __future__ import annotations

import re

from tests.deploy.repository import DEPLOY

INDEX = (DEPLOY / "README.md").read_text(encoding="utf-8")


def test_the_index_has_a_row_for_every_folder_and_no_other() -> None:
    folders = {
        path.name for path in DEPLOY.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert set(re.findall(r"^\| \[`(\w+)/`\]", INDEX, re.MULTILINE)) == folders


def test_the_index_leads_to_files_that_exist() -> None:
    links = re.findall(r"\]\(([^)#]+)", INDEX)
    assert links
    assert [link for link in links if not (DEPLOY / link).exists()] == []
