from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from service.api.body import parse_score_request
from service.api.compatible.open_inference_bodies import InferRequest
from service.api.explain_schemas import ExplainRequest
from service.api.faults import MAX_REPORTED_FAULTS, invalid_request
from service.api.schemas import ScoreRequest
from service.errors import InvalidRequest

MAX_ADS = 1000
GOOD = {"id": "1", "text": "shoe"}

LONG = "x" * 8001


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (ScoreRequest, {"query": "q", "ads": [{"id": "x" * 257, "text": "x"}]},
         "ads[0].id: String should have at most 256 characters"),
        (ScoreRequest, {"query": "q", "ads": [{"id": "", "text": "x"}]},
         "ads[0].id: String should have at least 1 character"),
        (ScoreRequest, {"query": "q", "ads": []}, "ads: List should have at least 1 item, not 0"),
        (ScoreRequest, {"query": "q", "ads": [7]}, "ads[0]: Input should be an object"),
        (ExplainRequest, {"query": LONG, "ad": {"text": "x"}},
         "query: String should have at most 8000 characters"),
        (ExplainRequest, {"query": "q", "ad": {"text": LONG}},
         "ad.text: String should have at most 8000 characters"),
        (ExplainRequest, {"query": "q", "ad": {"title": LONG}},
         "ad.title: String should have at most 8000 characters"),
        (ExplainRequest, {"query": "q", "ad": {"title": "x", "description": LONG}},
         "ad.description: String should have at most 8000 characters"),
        (ExplainRequest, {"query": "q", "ad": {"id": "x" * 257, "text": "x"}},
         "ad.id: String should have at most 256 characters"),
        (InferRequest, {"inputs": [{"name": "ad", "shape": [1], "datatype": "BYTES"}] * 17},
         "inputs: List should have at most 16 items, not 17"),
    ],
)  # fmt: skip
def test_a_limit_is_told_in_what_it_counts(
    kind: type[BaseModel], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError) as told:
        kind.model_validate_json(json.dumps(fields))
    assert invalid_request(told.value).message == message


def refused(**fields: object) -> InvalidRequest:
    content = json.dumps({"query": "red", **fields}).encode()
    with pytest.raises(InvalidRequest) as told:
        parse_score_request(content, MAX_ADS)
    return told.value


def named(error: InvalidRequest) -> list[str]:
    return [str(detail["field"]) for detail in error.details]


def test_each_wrong_ad_is_named_and_so_is_what_is_wrong_beside_them() -> None:
    ads = [GOOD, {"id": "2"}, GOOD, {"id": 4, "text": "x"}, 5]
    error = refused(query=" ", ads=ads, timeout_ms=-1)
    assert named(error) == ["query", "ads[1]", "ads[3].id", "ads[4]", "timeout_ms"]
    assert error.message.startswith("query: must not be empty")
    assert error.message.endswith("(and 4 more)")


def test_of_very_many_wrong_ads_the_first_are_named_and_the_rest_counted() -> None:
    error = refused(ads=[GOOD, *[{"id": "2"}] * 500, GOOD])
    assert named(error) == [f"ads[{n}]" for n in range(1, MAX_REPORTED_FAULTS + 1)]
    assert error.message.endswith("(and 499 more)")


def test_what_is_wrong_with_all_ads_together_is_told_as_it_is() -> None:
    assert named(refused(ads=[])) == ["ads"]
    assert named(refused(ads={"id": "1"})) == ["ads"]
    assert named(refused()) == ["ads"]


def test_a_thousand_ads_of_unknown_fields_hold_nobody_up() -> None:
    bad = {f"field{n}": 0 for n in range(14)}
    content = json.dumps({"query": "red", "ads": [bad] * MAX_ADS}).encode()
    began_s = time.process_time()
    with pytest.raises(InvalidRequest) as told:
        parse_score_request(content, MAX_ADS)
    assert time.process_time() - began_s < 0.5
    assert told.value.message.endswith(f"(and {16 * MAX_ADS - 1 - MAX_ADS} more)")


ANY_VALUE = st.sampled_from(["null", '"x"', '""', "1", "true", "[]", "{}", "1e400", "NaN", '" "'])
ANY_FIELD = st.sampled_from(["id", "title", "description", "text", "colour"])


@given(st.lists(st.lists(st.tuples(ANY_FIELD, ANY_VALUE), max_size=5), min_size=1, max_size=4))
def test_whatever_is_wrong_with_an_ad_it_is_named(ads: list[list[tuple[str, str]]]) -> None:
    bodies = ["{" + ", ".join(f'"{name}": {value}' for name, value in ad) + "}" for ad in ads]
    content = f'{{"query": "red", "ads": [{", ".join(bodies)}]}}'.encode()
    try:
        ScoreRequest.model_validate_json(content)
    except ValidationError:
        with pytest.raises(InvalidRequest) as told:
            parse_score_request(content, MAX_ADS)
        assert all(name.startswith(("ads[", "body")) for name in named(told.value))
