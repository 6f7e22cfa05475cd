"""Calls into the model libraries: their chatter kept quiet, their failures in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from model_export.errors import UnsupportedCheckpoint

LONGEST_REASON_CHARS = 300  # some messages of the libraries are pages long


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Only errors of transformers and of the hub's client are shown inside."""
    import transformers
    from huggingface_hub.utils import logging as hub_logging

    verbosity, hub_verbosity = transformers.logging.get_verbosity(), hub_logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    hub_logging.set_verbosity_error()  # it tells of each attempt to reach the hub
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        hub_logging.set_verbosity(hub_verbosity)


@contextlib.contextmanager
def refusing(what: str = "") -> Iterator[None]:
    """Any failure inside as a refusal that goes on after "checkpoint NAME".

    Args:
        what: The part that is loaded, with a space after it; empty for the whole.

    Raises:
        UnsupportedCheckpoint: In place of whatever was raised.
    """
    try:
        yield
    except Exception as error:  # a folder can be broken in ways that raise anything
        raise UnsupportedCheckpoint(f"cannot be loaded: {what}{one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """An error's message without line breaks, cut where it is pages long."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON_CHARS else f"{text[:LONGEST_REASON_CHARS]}..."
