"""Command line: settings, then one process or several. `--help` lists every setting."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from service.startup_errors import StartupError


def main() -> int:
    """Serve until a stop signal.

    Returns:
        Exit code: 0 after a stop, 1 when the start failed, 3 when workers would not stay up.
        (2 for options that do not exist.)
    """
    # uvicorn drains on these signals and then raises them again; this is that second time, and
    # the first one where the service is still loading.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    if hasattr(signal, "SIGHUP"):  # it means a reload, and what is loading now is new enough
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        try:
            start = _start()
        except ModuleNotFoundError as error:  # the command is there with any extra
            needs = "serving needs the extra: pip install '.[serve]'"
            sys.exit(f"adrel: no module {error.name}; {needs}")
        return start()
    except StartupError as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1


def _start() -> Callable[[], int]:
    """What to do with the settings; only what that needs is imported."""
    from service.log import configure_logging
    from service.settings import load_settings

    settings = load_settings(sys.argv[1:], os.environ)
    configure_logging(settings.log_level)
    if settings.workers > 1:
        # Without the model's libraries: a supervisor needs neither them nor their memory.
        from service.workers.supervisor import supervise

        return partial(supervise, settings, sys.argv[1:])
    from service.serve import serve

    return partial(serve, settings)


if __name__ == "__main__":
    sys.exit(main())
