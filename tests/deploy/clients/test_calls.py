"""Callers in other languages against servers that behave badly."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

from service.client import Ad
from service.client.affinity import affinity_key
from tests.deploy.clients.driver import Caller
from tests.deploy.clients.stand_in_server import (
    Behaviour,
    Closes,
    Hangs,
    Reply,
    Script,
    refused,
    scored,
    standing_in,
)

QUERY = "red shoe"
ADS = [Ad("A", title="red shoe", description="cheap"), Ad("B", text="blue bag")]
SHORT_MS = 100
MAX_LATE_MS = 1500  # loose: the machine's neighbours have a say
FALLBACK_SCORE = len(QUERY) / 100


def with_scores(*changes: dict[str, Any]) -> Script:
    """An answer whose ads differ from the usual by these fields."""

    def reply(asked: dict[str, Any]) -> Reply:
        usual = zip(asked["ads"], changes, strict=True)
        ads = [{"id": ad["id"], "score": 0.5, "status": "ok", **change} for ad, change in usual]
        return scored(asked, scores=ads)

    return reply


def test_calls_share_one_connection(caller: Caller) -> None:
    with standing_in() as server:
        for _ in range(20):
            assert not caller.call(server.url, QUERY, ADS).raised
    assert len(server.asked) == 20
    assert server.n_connections == 1


def test_a_refused_call_keeps_the_connection(caller: Caller) -> None:
    with standing_in(refused(429, "queue_full"), refused(422, "invalid_request")) as server:
        for _ in range(3):
            caller.call(server.url, QUERY, ADS)
    assert server.n_connections == 1


def test_fields_that_are_not_given_are_not_sent(caller: Caller) -> None:
    with standing_in() as server:
        caller.call(server.url, QUERY, ADS)
    [asked] = server.asked
    assert asked == {
        "query": QUERY,
        "ads": [
            {"id": "A", "title": "red shoe", "description": "cheap"},
            {"id": "B", "text": "blue bag"},
        ],
    }


def test_the_service_is_told_the_time_that_is_left_less_a_margin(caller: Caller) -> None:
    with standing_in() as server:
        caller.call(server.url, QUERY, ADS, timeout_ms=1000)
        caller.call(server.url, QUERY, ADS, timeout_ms=4)
    ample_ms = float(server.headers[0]["x-request-timeout-ms"])
    assert 500 < ample_ms <= 998
    for headers in server.headers[1:]:  # none, where four milliseconds were over before it was sent
        assert 0 < float(headers["x-request-timeout-ms"]) <= 3


@pytest.mark.parametrize("query", [QUERY, "größe 38 \N{ATHLETIC SHOE}"])
def test_the_same_query_has_the_same_affinity_key_in_every_language(
    caller: Caller, query: str
) -> None:
    with standing_in() as server:
        caller.call(server.url, query, ADS, header="X-Affinity-Key: mine")
    assert [headers["x-affinity-key"] for headers in server.headers] == [affinity_key(query)]


def test_the_body_is_declared_as_json_and_no_upgrade_is_asked_for(caller: Caller) -> None:
    with standing_in() as server:
        caller.call(server.url, QUERY, ADS)
    [headers] = server.headers
    assert headers["content-type"] == "application/json"
    assert "upgrade" not in headers


@pytest.mark.parametrize("cut", ["no answer", "half an answer"])
def test_a_server_that_stands_still_costs_no_more_than_the_deadline(
    caller: Caller, cut: str
) -> None:
    def half(asked: dict[str, Any]) -> Behaviour:
        return Reply(200, scored(asked).body, cut_bytes=20, after_cut=Hangs())

    with standing_in(Hangs() if cut == "no answer" else half) as server:
        late = caller.call(server.url, QUERY, ADS, timeout_ms=SHORT_MS)
        after = caller.call(server.url, QUERY, ADS)
        assert server.caller_left.wait(10)  # so that the service drops what nobody waits for
    assert (late.raised, late.code, late.http_status) == (True, "deadline_exceeded", 0)
    assert SHORT_MS - 2 <= late.elapsed_ms < SHORT_MS + MAX_LATE_MS
    assert len(server.asked) == 2  # a call that ended late is not made again
    assert not after.raised


def test_a_server_that_stands_still_costs_no_ad_its_score(caller: Caller) -> None:
    with standing_in(Hangs()) as server:
        late = caller.call(
            server.url, QUERY, ADS, timeout_ms=SHORT_MS, min_score=0.05, fallback=True
        )
    assert (late.raised, late.code) == (False, "deadline_exceeded")
    assert [(ad.id, ad.score, ad.status, ad.eligible) for ad in late.ads] == [
        (ad.id, FALLBACK_SCORE, "fallback", True) for ad in ADS
    ]


def test_a_port_where_nobody_listens_fails_at_once(caller: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    failed = caller.call(url, QUERY, ADS)
    assert (failed.raised, failed.code, failed.http_status) == (True, "connection_failed", 0)
    assert failed.elapsed_ms < MAX_LATE_MS
    filled = caller.call(url, QUERY, ADS, fallback=True)
    assert (filled.raised, filled.code) == (False, "connection_failed")
    assert [ad.status for ad in filled.ads] == ["fallback", "fallback"]


def test_a_connection_that_is_never_made_costs_no_more_than_the_deadline(caller: Caller) -> None:
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # once its backlog is full, Linux leaves new ones without an answer
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        late = caller.call(url, QUERY, ADS, timeout_ms=SHORT_MS)
    assert (late.raised, late.code) == (True, "deadline_exceeded")
    assert SHORT_MS - 2 <= late.elapsed_ms < SHORT_MS + MAX_LATE_MS


def test_a_kept_connection_that_was_closed_is_replaced(caller: Caller) -> None:
    with standing_in(scored, Closes(), scored) as server:
        outcomes = [caller.call(server.url, QUERY, ADS) for _ in range(2)]
    assert [outcome.raised for outcome in outcomes] == [False, False]
    assert server.n_connections == 2
    assert float(server.headers[2]["x-request-timeout-ms"]) <= float(
        server.headers[1]["x-request-timeout-ms"]
    )


def test_a_connection_that_closes_again_is_not_asked_a_third_time(caller: Caller) -> None:
    with standing_in(Closes(), Closes()) as server:
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code) == (True, "connection_failed")
    assert len(server.asked) == 2


def test_an_answer_that_breaks_off_is_not_asked_for_again(caller: Caller) -> None:
    def broken(asked: dict[str, Any]) -> Behaviour:
        return Reply(200, scored(asked).body, cut_bytes=20, after_cut=Closes())

    with standing_in(broken) as server:
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code) == (True, "connection_failed")
    assert len(server.asked) == 1


def test_a_server_that_always_closes_sees_a_tenth_more_calls_in_the_long_run(
    caller: Caller,
) -> None:
    n_calls = 60
    with standing_in(*[Closes()] * 200) as server:
        for _ in range(n_calls):
            assert caller.call(server.url, QUERY, ADS).code == "connection_failed"
    saved_up = 10
    assert n_calls + saved_up <= len(server.asked) <= n_calls * 1.1 + saved_up


@pytest.mark.parametrize(
    ("reply", "wait_ms"),
    [
        (refused(429, "queue_full", 12.5, Retry_After="1"), 12.5),
        (refused(429, "deadline_unreachable", Retry_After="2"), 2000),
        (refused(503, "not_ready"), 0),
        (refused(504, "deadline_exceeded"), 0),
        (refused(500, "inference_failed"), 0),
    ],
)
def test_what_the_service_says_reaches_the_caller_once(
    caller: Caller, reply: Reply, wait_ms: float
) -> None:
    with standing_in(reply, reply) as server:
        failed = caller.call(server.url, QUERY, ADS)
        filled = caller.call(server.url, QUERY, ADS, fallback=True)
    assert len(server.asked) == 2
    code = reply.body.decode().split('"')[5]
    for outcome in (failed, filled):
        assert (outcome.code, outcome.http_status) == (code, reply.status)
        assert outcome.retry_after_ms == wait_ms
    assert (failed.raised, filled.raised) == (True, False)
    assert [ad.score for ad in filled.ads] == [FALLBACK_SCORE] * 2


@pytest.mark.parametrize("status", [413, 415, 422])
def test_a_wrong_request_is_raised_in_spite_of_a_fallback(caller: Caller, status: int) -> None:
    with standing_in(refused(status, "invalid_request")) as server:
        failed = caller.call(server.url, QUERY, ADS, fallback=True)
    assert (failed.raised, failed.code, failed.http_status) == (True, "invalid_request", status)


@pytest.mark.parametrize("status", [301, 307, 404, 429, 502, 503])
def test_a_page_of_something_on_the_way_is_no_fault_of_the_request(
    caller: Caller, status: int
) -> None:
    page = Reply(status, b"<html>lost \xff</html>", {"Location": "/elsewhere"})
    with standing_in(page) as server:
        filled = caller.call(server.url, QUERY, ADS, fallback=True)
    assert (filled.raised, filled.code) == (False, f"http_{status}")
    assert len(server.asked) == 1


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[]", b'{"scores": [', b'{"scores": {}}'])
def test_a_body_that_is_no_answer_is_bad(caller: Caller, body: bytes) -> None:
    with standing_in(Reply(200, body)) as server:
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code, failed.http_status) == (True, "bad_answer", 200)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "B"},
        {"score": 1.5},
        {"score": -0.5},
        {"score": None},
        {"score": "0.5"},
        {"score": 0.5, "status": "deadline"},
        {"status": "great"},
        {"status": None},
    ],
)
def test_an_answer_that_would_rank_the_wrong_ad_is_bad(
    caller: Caller, changes: dict[str, Any]
) -> None:
    with standing_in(with_scores(changes, {})) as server:
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code) == (True, "bad_answer")


def test_another_number_of_scores_is_bad(caller: Caller) -> None:
    with standing_in(lambda asked: scored({"ads": asked["ads"][:1]})) as server:
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code) == (True, "bad_answer")


def test_fields_of_a_newer_service_are_ignored(caller: Caller) -> None:
    newer = with_scores({"why": {"tokens": [1, -2.5e-3, True, None]}}, {"note": "\ud83d\ude00/"})
    with standing_in(newer) as server:
        outcome = caller.call(server.url, QUERY, ADS)
    assert [ad.score for ad in outcome.ads] == [0.5, 0.5]


def test_an_ad_without_a_score_gets_the_fallback_and_the_others_keep_theirs(
    caller: Caller,
) -> None:
    partial = with_scores(
        {"score": None, "status": "deadline", "truncated": True}, {"eligible": True}
    )
    with standing_in(partial, partial) as server:
        plain = caller.call(server.url, QUERY, ADS, min_score=0.5)
        filled = caller.call(server.url, QUERY, ADS, min_score=0.5, fallback=True)
    assert [(ad.score, ad.status, ad.eligible) for ad in plain.ads] == [
        (None, "deadline", None),
        (0.5, "ok", True),
    ]
    assert [(ad.score, ad.status, ad.eligible) for ad in filled.ads] == [
        (FALLBACK_SCORE, "fallback", False),
        (0.5, "ok", True),
    ]
    assert filled.code == ""
    assert [ad.truncated for ad in filled.ads] == [True, False]


@pytest.mark.parametrize("score", [5e-324, 0.1 + 0.2, 1 - 2**-53, 0.015645265579223633, 1e-7, 0, 1])
def test_scores_keep_every_bit(caller: Caller, score: float) -> None:
    with standing_in(with_scores({"score": score}, {"score": score, "status": "cached"})) as server:
        outcome = caller.call(server.url, QUERY, ADS)
    assert [ad.score for ad in outcome.ads] == [score, score]


@pytest.mark.parametrize(
    "text",
    [
        "größe 42 → 日本語 Ελληνικά עברית",
        'say "cheap" \\ o\'clock </script> & <b>',
        "two\nlines\tand\r\n\x00\x1f\x7f\u2028",
        "\U0001f45f\U0001f469\u200d\U0001f680 e\u0301",
        "%41 + \\u0041 \\n",
    ],
)
def test_texts_arrive_and_return_as_they_were(caller: Caller, text: str) -> None:
    with standing_in() as server:
        outcome = caller.call(server.url, text, [Ad(text, title=text, description=text)])
    [asked] = server.asked
    assert asked == {"query": text, "ads": [{"id": text, "title": text, "description": text}]}
    assert [ad.id for ad in outcome.ads] == [text]
