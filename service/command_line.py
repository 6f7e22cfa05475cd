"""A parser of options that knows what a misspelt one was meant to be."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn

UNRECOGNIZED = "unrecognized arguments: "  # argparse's own words
REQUIRED = "the following arguments are required: "


class OptionParser(argparse.ArgumentParser):
    """argparse's, with a suggestion beside each option that does not exist, commands' included."""

    def parse_known_args(  # type: ignore[override]  # of its overloads the one that parse_args uses
        self, args: list[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse what is not known here, since the parser above has only its own options.

        Returns:
            namespace: The options.
            unknown: Empty.
        """
        self._given = sys.argv[1:] if args is None else args
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(UNRECOGNIZED + " ".join(unknown))
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message, with what was meant where that can be told, and exit with 2."""
        given: Sequence[str] = ()
        if message.startswith(UNRECOGNIZED):
            given = message.removeprefix(UNRECOGNIZED).split()
        elif message.startswith(REQUIRED):  # perhaps there, and misspelt
            given = self._given
        meant = [option for one in given if (option := self._meant(one)) is not None]
        super().error(message + (f"; did you mean {', '.join(meant)}?" if meant else ""))

    def _meant(self, argument: str) -> str | None:
        option = argument.partition("=")[0]
        known = any(name.startswith(option) for name in self._option_string_actions)
        if known or not option.startswith("--"):
            return None
        near = difflib.get_close_matches(option, self._option_string_actions, n=1)
        return near[0] if near else None
