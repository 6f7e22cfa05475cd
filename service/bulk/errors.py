"""Every way in which a run over a file of pairs ends without its output.

BulkError                 one line on stderr, exit code 1
|- WrongArguments         the paths do not fit each other, or name no known format
|- ExtraMissing           Parquet without pyarrow
|- InputUnusable          the file cannot be read at all, or has not the columns of pairs
|- InputChanged           it is another file than when the run began
|- OutputExists           something is there already that would be lost
|- CannotResume           what was scored before does not belong to this run
`- RunInProgress          another process writes the same output

A row that is wrong is none of these: it is set aside, and the run goes on.
"""

from __future__ import annotations


class BulkError(Exception):
    """The run ended before its output was there. Parts that are complete stay, for a resume."""


class WrongArguments(BulkError):
    """The paths do not fit each other, or have no suffix that names a format."""


class ExtraMissing(BulkError):
    """A Parquet file, and no pyarrow to read or write it."""

    def __init__(self) -> None:
        super().__init__("Parquet needs pyarrow: pip install '.[bulk]'")


class InputUnusable(BulkError):
    """The input cannot be read, or has not the columns that pairs need."""


class InputChanged(BulkError):
    """The input was written to while it was being scored."""


class OutputExists(BulkError):
    """There is an output, or a part of one, that the run would overwrite."""


class CannotResume(BulkError):
    """The parts that are there were made of another input, by another model or in another form."""


class RunInProgress(BulkError):
    """Another process holds the lock of the folder of parts."""
