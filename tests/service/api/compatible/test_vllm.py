from __future__ import annotations

import json

import pytest

from service.api.compatible.vllm import score_fields


@pytest.mark.parametrize(
    "body",
    [
        {"text_1": "q", "text_2": "x"},
        {"data_1": ["q"]},
        {"queries": None},
        {"model": "m", "items": [], "queries": "q"},
    ],
)
def test_a_body_with_the_first_side_of_a_pair_is_vllms(body: dict[str, object]) -> None:
    assert score_fields(json.dumps(body).encode()) == body


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'["text_1"]',
        b'{"query": "text_1"}',
        b'{"query": "q", "ads": [], "text_1": "q"}',
        b'{"inner": {"queries": "q"}}',
        b'{"text_1": ',
    ],
)
def test_anything_else_is_not(content: bytes) -> None:
    assert score_fields(content) is None
