"""Workers that are no processes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from service.workers.link import LinkLost
from service.workers.worker_process import WorkerProcess


class FakeLink:
    """Answers what it is given: a value, or an error to raise."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def ask(self, what: str, about: object = None, timeout_s: float | None = None) -> Any:  # noqa: ANN401, ARG002
        self.asked.append(what)
        answer = self.answers[what]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class FakeWorker:
    """Ends when it is told to, as a process does."""

    def __init__(self, link: FakeLink | None = None, *, served_s: float = 0.0) -> None:
        self.link = link or FakeLink(series=LinkLost())
        self.served = asyncio.Event()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.silent_s = 0.0
        self.served_s = served_s
        self.replaced = False
        self.unfit = False
        self.signals: list[str] = []
        self.ignores_stop = False

    def end(self, exit_code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(exit_code)

    def stop(self) -> None:
        self.signals.append("stop")
        if not self.ignores_stop:
            self.end(0)

    def kill(self) -> None:
        self.signals.append("kill")
        self.end(-9)


def as_process(worker: FakeWorker) -> WorkerProcess:
    return cast("WorkerProcess", worker)
