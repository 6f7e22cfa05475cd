from __future__ import annotations

import json
import string

import httpx

from service.client.affinity import affinity_key
from tests.service.client.stand_ins import ADS, answer_to, blocking_client, refusal


def test_a_key_is_the_beginning_of_the_sha_256_of_the_query() -> None:
    assert affinity_key("running shoes") == "7f43e6c7c965c8c8"  # as sha256sum has it
    assert affinity_key("") == "e3b0c44298fc1c14"


def test_queries_that_differ_in_a_letter_have_different_keys() -> None:
    keys = {affinity_key("shoe" + letter) for letter in string.printable}
    assert len(keys) == len(string.printable)


def test_a_query_that_is_no_text_for_utf_8_has_a_key_too() -> None:
    assert affinity_key("\ud800") != affinity_key("?")


def test_every_attempt_carries_the_key_of_its_query() -> None:
    keys: list[str] = []

    def service(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["X-Affinity-Key"])
        if len(keys) == 1:
            return refusal(503, "not_ready")
        return httpx.Response(200, json=answer_to(json.loads(request.content)))

    with blocking_client(service) as client:
        client.score("red shoe", ADS)
        client.score("blue bag", ADS)
    assert keys == [affinity_key(query) for query in ("red shoe", "red shoe", "blue bag")]
