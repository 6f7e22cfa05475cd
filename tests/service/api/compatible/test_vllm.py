from __future__ import annotations

import json

import pytest

from service.api.compatible.vllm import is_score_body


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
    assert is_score_body(json.dumps(body).encode())


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
    assert not is_score_body(content)
