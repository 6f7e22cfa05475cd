from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from service.log import JsonFormatter
from service.log_writer import BackgroundHandler


class Stream(io.StringIO):
    """A stream that can be full, and that can stall."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.reads = threading.Event()
        self.reads.set()

    def write(self, text: str) -> int:
        assert self.reads.wait(timeout=30)
        if self.fault is not None:
            raise self.fault
        return super().write(text)


@pytest.fixture
def stream() -> Iterator[Stream]:
    made = Stream()
    yield made
    made.reads.set()


def logging_to(
    stream: Stream, max_waiting_lines: int = 10
) -> tuple[logging.Logger, BackgroundHandler]:
    logger, handler = logging.Logger("test"), BackgroundHandler(stream, max_waiting_lines)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    return logger, handler


def test_lines_come_in_order_and_all_are_written_at_the_end(stream: Stream) -> None:
    logger, handler = logging_to(stream)
    for number in range(5):
        logger.warning("line %d", number)
    handler.close()
    written = stream.getvalue().splitlines()
    assert [line.count(f"line {number}") for number, line in enumerate(written)] == [1] * 5


@pytest.mark.parametrize("fault", [OSError(28, "No space left"), ValueError("closed file")])
def test_a_stream_that_fails_costs_lines_and_says_how_many_when_it_is_back(
    stream: Stream, fault: Exception
) -> None:
    logger, handler = logging_to(stream)
    stream.fault = fault
    told: list[int] = []
    handler.on_lost = lambda: told.append(1)
    logger.warning("lost")
    logger.warning("lost too")
    stop_s = time.monotonic() + 30
    while handler._lost_lines < 2:
        assert time.monotonic() < stop_s, "the lost lines were not counted"
    assert len(told) == 2
    stream.fault = None
    logger.warning("written")
    handler.close()
    written = stream.getvalue()
    assert "lost too" not in written
    assert '"lost_lines": 2' in written.splitlines()[1]


def test_a_reader_that_stalls_delays_nobody(stream: Stream) -> None:
    stream.reads.clear()
    logger, handler = logging_to(stream, max_waiting_lines=3)

    def log() -> None:
        for number in range(20):
            logger.warning("line %d", number)

    user = threading.Thread(target=log, daemon=True)
    user.start()
    user.join(timeout=30)
    assert not user.is_alive()
    stream.reads.set()
    handler.close()
    assert '"lost_lines"' in stream.getvalue()


def test_a_record_that_cannot_be_told_raises_nothing(stream: Stream) -> None:
    logger, handler = logging_to(stream)
    logger.warning("%d", "no number")
    logger.warning("next")
    handler.close()
    assert "next" in stream.getvalue()
