from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.applications import Starlette

from service.listening import bind
from service.server import AdminServer, Server
from service.startup_errors import CannotListen


async def drained() -> None:
    """Nothing is under way."""


async def start_and_stop() -> None:
    main, admin = (
        uvicorn.Config(Starlette(), log_config=None, ws="none", lifespan=lifespan)
        for lifespan in ("on", "off")
    )
    with bind("127.0.0.1", 0) as listener, bind("127.0.0.1", 0) as for_operators:
        server = Server(main, drained, lambda: None, (AdminServer(admin), for_operators))
        serves = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(20):
            while not server.started:  # noqa: ASYNC110  # uvicorn has a flag alone
                await asyncio.sleep(0.01)
            logging.getLogger("uvicorn.error").info("of the main server")
            server.should_exit = True
            await serves


def test_a_process_with_two_servers_tells_once_that_it_starts_and_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    asyncio.run(start_and_stop())
    for told in ("Started server process", "Shutting down", "Finished server process"):
        assert sum(message.startswith(told) for message in caplog.messages) == 1, told
    assert "of the main server" in caplog.messages
    assert "listening for operators" in caplog.messages


@pytest.mark.parametrize("whose", ["callers", "operators"])
def test_no_application_starts_where_another_listens_by_now(whose: str) -> None:
    started: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        started.append("application")
        yield

    config, admin = (
        uvicorn.Config(Starlette(lifespan=lifespan), log_config=None, ws="none") for _ in range(2)
    )
    with (
        bind("127.0.0.1", 0) as listener,
        bind("127.0.0.1", 0) as for_operators,
        bind(
            "127.0.0.1", {"callers": listener, "operators": for_operators}[whose].getsockname()[1]
        ) as other,
    ):
        other.listen()
        server = Server(config, drained, lambda: None, (AdminServer(admin), for_operators))
        with pytest.raises(CannotListen):
            asyncio.run(server.serve(sockets=[listener]))
    assert started == []
