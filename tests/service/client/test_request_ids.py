from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from service.client.request_ids import RequestIds
from service.domain import is_request_id


def test_no_id_is_given_twice_whichever_thread_asks() -> None:
    ids = [RequestIds(), RequestIds()]
    with ThreadPoolExecutor(8) as threads:
        given = list(threads.map(lambda index: ids[index % 2].following(), range(2000)))
    assert len(set(given)) == 2000


def test_the_service_takes_them() -> None:
    assert is_request_id(RequestIds().following())


def test_a_child_process_gives_ids_of_its_own() -> None:
    ids = RequestIds()
    of_the_parent = ids.following()
    ids.renew()
    assert ids.following() != of_the_parent
