from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import pytest

from service.daemon_thread import in_daemon_thread
from tests.service.test_imports import ROOT


@pytest.mark.anyio
async def test_what_comes_of_the_work_is_told_on_the_loop() -> None:
    def fails() -> None:
        raise ValueError("no")

    assert await in_daemon_thread(lambda: threading.current_thread().name, "mine") == "mine"
    with pytest.raises(ValueError, match="no"):
        await in_daemon_thread(fails, "mine")


@pytest.mark.anyio
async def test_an_error_that_comes_when_nobody_waits_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails() -> None:
        raise ValueError("no")

    future = in_daemon_thread(fails, "mine")
    await asyncio.wait({future})
    del future
    gc.collect()
    assert not caplog.records


def test_work_that_never_ends_holds_up_neither_the_loop_nor_the_exit() -> None:
    code = (
        "import asyncio, threading\n"
        "from service.daemon_thread import in_daemon_thread\n"
        "async def main():\n"
        "    stuck = in_daemon_thread(threading.Event().wait, 'stuck')\n"
        "    await asyncio.wait({stuck}, timeout=0.01)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=True)
