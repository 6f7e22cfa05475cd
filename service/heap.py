"""What the process keeps of its memory, and what the garbage collector walks."""

from __future__ import annotations

import contextlib
import ctypes
import gc


def freeze_heap() -> None:
    """Take all that lives now out of later collections.

    Without this each full collection walks every word of the tokenizer, and an auction waits. What
    is frozen is still freed when nothing refers to it; only cycles of it never are. So this is for
    the start: requests under way are cycles, and would hold their model for good.
    """
    gc.collect()
    gc.freeze()


def return_free_memory() -> None:
    """Give memory that was freed back to the system; slow, so not on the event loop.

    glibc keeps what was freed inside its arenas, and after a few models that is as much as they
    need. Other C libraries have no such call.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # TypeError: no handle on Windows
        ctypes.CDLL(None).malloc_trim(0)
