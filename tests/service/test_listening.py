from __future__ import annotations

import socket

import pytest

from service.listening import bind, start_listening, url_of
from service.startup_errors import CannotListen


def test_who_listens_second_is_told_where_though_both_could_bind() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind("127.0.0.1", port) as second:
            start_listening(first)
            with pytest.raises(CannotListen, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*use"):
                start_listening(second)


def test_who_comes_when_another_listens_cannot_even_bind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(CannotListen):
        bind("127.0.0.1", taken.getsockname()[1])


def test_listening_again_changes_nothing() -> None:
    with bind("127.0.0.1", 0) as bound:
        start_listening(bound)
        start_listening(bound)
        with socket.create_connection(bound.getsockname()):
            bound.accept()[0].close()


def test_an_address_of_the_sixth_version_is_told_in_brackets() -> None:
    with bind("::1", 0) as bound:
        assert url_of(bound) == f"http://[::1]:{bound.getsockname()[1]}"
