"""The product as its users meet it: a real process, a real bundle, real HTTP."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from service.api.compatible.routes import routing_error
from tests.end_to_end.faulty_service import faulty, held
from tests.end_to_end.running_service import ROOT, RunningService, environment, running
from tests.waiting import until

WORDS = "red blue shoe bag cheap run fast a b c d e f".split()  # noqa: SIM905  # reads better


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", "50000") as started:
        yield started


@pytest.fixture(scope="module")
def uncached(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, ADREL_CACHE_BYTES="0") as started:
        yield started


def ads(*texts: str) -> list[dict[str, str]]:
    return [{"id": f"ad-{i}", "text": text} for i, text in enumerate(texts)]


def long_ads(n_ads: int) -> list[dict[str, str]]:
    """Ads that take some time, no two alike."""
    return ads(*[f"{i} {'shoe bag ' * 20}" for i in range(n_ads)])


def test_each_ad_gets_a_score_in_order_with_its_own_id(service: RunningService) -> None:
    body = {
        "query": "red shoe",
        "ads": [
            {"id": "B", "title": "cheap red shoe", "description": "run fast"},
            {"id": "A", "text": "blue bag"},
        ],
        "request_id": "auction-7",
        "min_score": 0,
    }
    response = service.score(body)
    answer = response.json()
    assert response.status_code == 200
    assert response.headers["X-Request-Id"] == answer["request_id"] == "auction-7"
    assert [ad["id"] for ad in answer["scores"]] == ["B", "A"]
    assert all(0 < ad["score"] < 1 and ad["status"] == "ok" for ad in answer["scores"])
    assert all(ad["eligible"] is True for ad in answer["scores"])
    assert answer["model"] == {
        key: service.client.get("/v1/model").json()["model"][key] for key in ("name", "version")
    }
    timing = answer["timing_ms"]
    assert sum(timing[s] for s in ("encode", "queue", "inference")) == pytest.approx(
        timing["total"], abs=0.01
    )


def test_answers_and_errors_are_what_the_openapi_document_promises(service: RunningService) -> None:
    document = service.client.get("/openapi.json").json()
    responses = document["paths"]["/v1/score"]["post"]["responses"]
    bodies: list[dict[str, Any]] = [
        {"query": "red", "ads": ads("shoe"), "min_score": 0.5},
        {"query": "", "ads": ads("shoe")},
    ]
    for body in bodies:
        response = service.score(body)
        promised = responses[str(response.status_code)]["content"]["application/json"]["schema"]
        jsonschema.validate(response.json(), {**promised, "components": document["components"]})
    request = document["paths"]["/v1/score"]["post"]["requestBody"]["content"]["application/json"]
    wanted = {**request["schema"], "components": document["components"]}
    jsonschema.validate(bodies[0], wanted)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"query": "red"}, wanted)


def test_a_pair_scores_the_same_alone_and_in_any_traffic(uncached: RunningService) -> None:
    service = uncached
    rng = random.Random(5)  # noqa: S311  # a fixed sequence is wanted
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 40))) for _ in range(120)]
    alone = {
        text: service.score({"query": "red shoe", "ads": ads(text)}).json()["scores"][0]["score"]
        for text in texts
    }
    assert len(set(alone.values())) > 60, "the model is too dull to tell pairs apart"

    def mixed(seed: int) -> list[tuple[str, float]]:
        chosen = random.Random(seed).sample(texts, 30)  # noqa: S311
        scored = service.score({"query": "red shoe", "ads": ads(*chosen)}).json()["scores"]
        return [(text, ad["score"]) for text, ad in zip(chosen, scored, strict=True)]

    with ThreadPoolExecutor(8) as executor:
        for answer in executor.map(mixed, range(24)):
            assert answer == [(text, alone[text]) for text, _ in answer]


def test_a_cached_score_is_the_computed_one_and_says_so(service: RunningService) -> None:
    body = {"query": "blue shoe", "ads": ads("run fast", "cheap bag " * 60, "run fast")}
    first, again = (service.score(body).json()["scores"] for _ in range(2))
    assert [ad["status"] for ad in first] == ["ok"] * 3
    assert [ad["status"] for ad in again] == ["cached"] * 3
    for one, other in zip(first, again, strict=True):
        assert {**one, "status": ""} == {**other, "status": ""}
    assert service.metric('adrel_cache_requests_total{result="hit"}') >= 3
    assert service.metric('adrel_cache_requests_total{result="joined"}') >= 1
    assert service.metric('adrel_pairs_total{status="cached"}') >= 3


def test_a_timeout_in_the_header_holds_unless_the_body_has_one(service: RunningService) -> None:
    header = {"X-Request-Timeout-Ms": "0.001"}
    late = service.score({"query": "header", "ads": ads("shoe")}, headers=header)
    assert late.json()["error"]["code"] == "deadline_exceeded"
    both = {"query": "header", "ads": ads("shoe"), "timeout_ms": 5000}
    assert service.score(both, headers=header).status_code == 200


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan", "inf", "1e3", "", "1.", "\xb2"])
def test_a_bad_timeout_header_is_refused_with_what_it_may_be(
    service: RunningService, text: str
) -> None:
    headers = {b"X-Request-Timeout-Ms": text.encode("latin-1")}
    response = service.client.post("/v1/score", json=asking(), headers=headers)
    assert response.status_code == 422
    (detail,) = response.json()["error"]["details"]
    assert detail["field"] == "X-Request-Timeout-Ms"
    assert "a plain number over 0, such as 250 or 12.5, up to 60000" in detail["problem"]


@pytest.mark.parametrize("text", ["60001", "99999999999", "1" * 30])
def test_a_timeout_header_over_the_limit_is_refused_with_the_limit(
    service: RunningService, text: str
) -> None:
    response = service.score(asking(), headers={"X-Request-Timeout-Ms": text})
    assert response.status_code == 422
    assert "the limit is 60000" in response.json()["error"]["message"]


def test_a_request_that_would_be_late_is_refused_at_once(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    one_by_one = held(tiny_bundle_int8, tmp_path, "--max-batch-pairs", "1")
    with one_by_one as busy, ThreadPoolExecutor(1) as executor:
        bulk = executor.submit(
            busy.service.score, {"query": "red", "ads": long_ads(512), "timeout_ms": 60_000}
        )
        busy.service.reaches("adrel_queue_pairs", lambda n_pairs: n_pairs > 0)
        tight = {"query": "blue", "ads": long_ads(300), "timeout_ms": 5}
        response = busy.service.score(tight)
        busy.mend()
        assert bulk.result().status_code == 200
    assert response.status_code == 429
    error = response.json()["error"]
    assert error["code"] == "deadline_unreachable"
    assert error["details"][0]["predicted_ms"] > 5
    assert int(response.headers["Retry-After"]) >= 1


def test_batches_form_across_requests(service: RunningService) -> None:
    batches = service.metric("adrel_batch_pairs_count")
    pairs = service.metric("adrel_batch_pairs_sum")
    bodies = [{"query": f"red {i}", "ads": ads("shoe bag")} for i in range(200)]
    with ThreadPoolExecutor(16) as executor:
        answers = [answer.status_code for answer in executor.map(service.score, bodies)]
    assert set(answers) == {200}
    assert service.metric("adrel_batch_pairs_sum") - pairs == 200
    assert service.metric("adrel_batch_pairs_count") - batches < 200


def asking(**fields: object) -> dict[str, object]:
    return {"query": "q", "ads": ads("x"), **fields}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (asking(query="  "), "query: must not be empty"),
        (asking(query=7), "query: Input should be a valid string"),
        ({"ads": ads("x")}, "query: Field required"),
        ({"query": "q"}, "ads: Field required"),
        (asking(ads=[]), "ads: List should have at least 1"),
        (asking(ads=ads(*["x"] * 1001)), "got 1001, the limit is 1000"),
        (asking(ads=[{"id": "1"}]), "ads[0]: an ad needs"),
        (asking(ads=[{"id": "1", "text": " "}]), "ads[0]: an ad needs"),
        (asking(ads=[{"id": 1, "text": "x"}]), "ads[0].id: Input should be a valid string"),
        (asking(ads=[{"id": "1", "titel": "x"}]), "ads[0].titel: "),
        (asking(ads=[{"id": "1", "text": "x", "title": "y"}]), "ads[0]: give either text, or"),
        (asking(timeout_ms=0), "timeout_ms: Input should be greater than 0"),
        (asking(timeout_ms="5"), "timeout_ms: Input should be a valid number"),
        (asking(timeout_ms=60001), "timeout_ms: got 60001, the limit is 60000"),
        (asking(min_score=1.5), "min_score: Input should be less than or equal to 1"),
        (asking(priority="vip"), "priority: Input should be 'auction' or 'batch'"),
        (asking(request_id="a\nb"), "request_id: must be 1 to 128 printable"),
        ([1, 2], "body: "),
    ],
)
def test_bad_input_is_refused_with_the_field_and_the_limit(
    service: RunningService, body: object, message: str
) -> None:
    pairs_before = service.metric("adrel_batch_pairs_sum")
    response = service.score(body)
    error = response.json()["error"]
    assert response.status_code == 422
    assert error["code"] == ("too_many_ads" if "1001" in message else "invalid_request")
    assert message in error["message"]
    assert service.metric("adrel_batch_pairs_sum") == pairs_before


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b'{"query": ', {"content-type": "application/json"}, 422, "invalid_request"),
        (b"", {"content-type": "application/json"}, 422, "invalid_request"),
        (b'{"query": "\xff"}', {"content-type": "application/json"}, 422, "invalid_request"),
        (b'{"query": "\\ud800", "ads": [{"id": "1", "text": "x"}]}',
         {"content-type": "application/json"}, 422, "invalid_request"),
        (b'{"query": "q", "ads": [{"id": "1", "text": "x"}], "timeout_ms": NaN}',
         {"content-type": "application/json"}, 422, "invalid_request"),
        (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        (b"{}", {"content-type": "application/json", "content-encoding": "gzip"}, 415,
         "unsupported_media_type"),
        (b"{}", {}, 415, "unsupported_media_type"),
        (b" " * 50001, {"content-type": "application/json"}, 413, "body_too_large"),
    ],
)  # fmt: skip
def test_a_body_that_is_not_our_json_is_refused(
    service: RunningService, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = service.client.post("/v1/score", content=content, headers=headers)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


def test_an_error_echoes_the_callers_request_id(service: RunningService) -> None:
    response = service.score({}, headers={"X-Request-Id": "auction-9"})
    assert response.status_code == 422
    assert response.headers["X-Request-Id"] == "auction-9"


def test_thousands_of_faults_are_refused_as_quickly_as_one(service: RunningService) -> None:
    faults = {"query": "q", "ads": [0] * 12_000}
    error = service.score(faults).json()["error"]
    assert error["code"] == "too_many_ads"


def test_a_body_of_unknown_length_is_read_no_further_than_the_limit(
    service: RunningService,
) -> None:
    chunks = iter([b" " * 30000] * 3)
    headers = {"content-type": "application/json"}
    response = service.client.post("/v1/score", content=chunks, headers=headers)
    assert response.status_code == 413


def test_a_caller_that_hangs_up_amid_its_body_is_counted_and_is_no_fault_of_ours(
    service: RunningService,
) -> None:
    url = httpx.URL(service.url)
    with socket.create_connection((url.host, url.port or 0)) as connection:
        connection.sendall(
            b"POST /v1/score HTTP/1.1\r\nHost: adrel\r\nContent-Type: application/json\r\n"
            b'Content-Length: 1000\r\n\r\n{"query"'
        )
    gone = 'adrel_requests_total{outcome="client_gone",route="/v1/score"}'
    for _ in range(1000):  # the server sees the hang-up when its loop next turns
        if service.metric(gone) == 1:
            break
    assert service.metric(gone) == 1
    assert not [entry for entry in service.log if entry["level"] == "error"]


def test_a_caller_that_hangs_up_stops_costing(tiny_bundle_int8: Path, tmp_path: Path) -> None:
    n_callers, n_ads = 4, 100
    with held(tiny_bundle_int8, tmp_path) as busy:
        started, url = busy.service, httpx.URL(busy.service.url)
        connections = [
            socket.create_connection((url.host, url.port or 0)) for _ in range(n_callers)
        ]
        for number, connection in enumerate(connections):
            body = json.dumps({"query": f"red {number}", "ads": long_ads(n_ads)}).encode()
            head = (
                "POST /v1/score HTTP/1.1\r\nHost: adrel\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(head.encode() + body)
        started.reaches("adrel_queue_pairs", lambda pairs: pairs > (n_callers - 1) * n_ads)
        for connection in connections:
            connection.close()
        gone = 'adrel_requests_total{outcome="client_gone",route="/v1/score"}'
        started.reaches(gone, lambda n_requests: n_requests == n_callers)
        busy.mend()
        started.reaches("adrel_queue_pairs", lambda pairs: pairs == 0)
        assert started.metric("adrel_batch_pairs_sum") < n_ads, "the batch that was running alone"


def test_over_long_text_is_scored_truncated_flagged_and_counted(service: RunningService) -> None:
    before = service.metric("adrel_truncated_pairs_total")
    body = {"query": "red", "ads": ads("shoe " * 1000, "shoe")}
    scores = service.score(body).json()["scores"]
    assert scores[0]["truncated"] is True
    assert "truncated" not in scores[1]
    assert service.metric("adrel_truncated_pairs_total") == before + 1


def test_a_timeout_that_cannot_be_met_is_answered_and_counted(service: RunningService) -> None:
    body = {"query": "blue", "ads": long_ads(100), "timeout_ms": 0.001}
    response = service.score(body)
    assert response.status_code == 504
    assert response.json()["error"]["code"] == "deadline_exceeded"
    assert service.metric('adrel_pairs_total{status="deadline"}') >= 100


def test_probes_say_live_and_ready_and_the_model_states_its_figures(
    service: RunningService,
) -> None:
    assert service.client.get("/livez").json() == {"status": "live"}
    assert service.client.get("/readyz").json() == {"status": "ready"}
    model = service.client.get("/v1/model").json()
    assert model["precision"]["weights"] == "int8"
    assert model["parity"]["int8"]["batch_spread"] == 0
    assert service.client.get("/docs").status_code == 200


def test_unknown_paths_and_methods_get_our_error_body(service: RunningService) -> None:
    assert service.client.get("/v3/score").json()["error"]["code"] == "not_found"
    response = service.client.get("/v1/score")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert response.json()["error"]["code"] == "method_not_allowed"


def test_every_path_answers_all_methods_and_says_which_it_takes(service: RunningService) -> None:
    document = service.client.get("/openapi.json").json()
    identity = service.client.get("/v1/model").json()["model"]
    names = {"model": identity["name"], "version": identity["version"]}
    paths = {path: list(methods) for path, methods in document["paths"].items()}
    paths |= {"/docs": ["get"], "/openapi.json": ["get"]}
    assert len(paths) > 20
    for template, (known,) in paths.items():
        path = template.format(**names)
        allowed = {"GET", "HEAD"} if known == "get" else {known.upper()}
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            response = service.client.request(method, path)
            where = f"{method} {path}"
            if method in allowed:
                expected = {200} if known == "get" else {400, 415}  # a body is missing
                assert response.status_code in expected, where
                assert method != "HEAD" or not response.content, where
            else:
                assert response.status_code == 405, where
                assert set(response.headers["allow"].split(", ")) == allowed, where
                if method != "HEAD":
                    assert f"{method} {path}: Method Not Allowed" in response.text, where
                    own = routing_error(path, 405, "")
                    assert response.json().keys() == (own or {"error": ""}).keys(), where


def test_a_full_queue_answers_429_with_a_time_to_come_back(tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8, "--max-queue-ms", "5", "--inference-threads", "1") as small:
        bodies = [{"query": f"red {i}", "ads": long_ads(8)} for i in range(200)]
        with ThreadPoolExecutor(16) as executor:
            responses = list(executor.map(small.score, bodies))
        refused = [response for response in responses if response.status_code == 429]
        assert refused
        assert {response.status_code for response in responses} == {200, 429}
        assert int(refused[0].headers["Retry-After"]) >= 1
        assert small.metric('adrel_shed_total{reason="queue_full"}') == len(refused)


def test_a_stop_signal_lets_accepted_requests_finish_and_exits_zero(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with held(tiny_bundle_int8, tmp_path, "--drain-timeout-s", "60") as busy:
        stopping = busy.service
        body = {"query": "red", "ads": long_ads(400), "timeout_ms": 60_000}
        with ThreadPoolExecutor(1) as executor:
            answer = executor.submit(stopping.score, body)
            stopping.reaches("adrel_queue_pairs", lambda n_pairs: n_pairs > 0)
            stopping.process.send_signal(signal.SIGTERM)
            until(lambda: "stopping" in busy.messages())
            busy.mend()
            assert {ad["status"] for ad in answer.result().json()["scores"]} == {"ok"}
        assert stopping.process.wait(timeout=30) == 0


def test_a_drain_that_runs_out_of_time_answers_every_caller_in_our_words(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    arguments = ("--inference-threads", "1", "--drain-timeout-s", "0.2", "--max-batch-pairs", "1",
                 "--max-queue-ms", "60000", "--default-timeout-ms", "60000")  # fmt: skip
    with faulty(tiny_bundle_int8, tmp_path, *arguments) as busy:
        stopping = busy.service
        busy.break_it("slow 0.02")
        bodies = [{"query": f"red {i}", "ads": long_ads(100)} for i in range(8)]
        bodies[-1]["priority"] = "batch"
        with ThreadPoolExecutor(8) as executor:
            answers = [executor.submit(stopping.score, body) for body in bodies]
            stopping.reaches("adrel_queue_pairs", lambda n_pairs: n_pairs > 700)
            stopping.process.send_signal(signal.SIGTERM)
            responses = [answer.result() for answer in answers]
        assert stopping.process.wait(timeout=30) == 0
        *partial, unscored = responses
        assert unscored.status_code == 503
        assert unscored.json()["error"]["code"] == "not_ready"
        assert {response.status_code for response in partial} <= {200, 503}
        answered = [response.json() for response in partial if response.status_code == 200]
        assert answered
        for answer in answered:
            assert {ad["status"] for ad in answer["scores"]} == {"ok", "deadline"}
        assert not [entry for entry in stopping.log if "exception" in entry]
        (cut,) = [entry for entry in stopping.log if entry["message"] == "drain ran out of time"]
        assert cut["cut_pairs"] > 0
        assert not [entry for entry in stopping.log if entry["level"] == "error"]


def start_fails(*arguments: str, **variables: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        cwd=ROOT, env=environment(**variables), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1
    return result.stderr


def test_a_start_that_cannot_work_ends_with_one_line(
    tiny_bundle_int8: Path, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    good = str(tiny_bundle_int8)
    assert "did you mean ADREL_PORT?" in start_fails("--bundle", good, ADREL_PROT="1")
    assert "no bundle at" in start_fails("--bundle", str(tmp_path))
    assert "int8, which is for the CPU" in start_fails("--bundle", good, "--provider", "cuda")
    wide = str(tiny_bundle_fp32)
    assert "CUDAExecutionProvider" in start_fails("--bundle", wide, "--provider", "cuda")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1:{port}" in start_fails("--bundle", good, "--port", port)
    assert "drain_timeout_s" in start_fails("--bundle", good, "--drain-timeout-s", "inf")
