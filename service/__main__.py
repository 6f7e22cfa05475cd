"""Command line: settings, then one process or several. `--help` lists every setting.

`python -m service score-file` scores a file instead; see `service.bulk.command`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from service.startup_errors import StartupError


def main() -> int:
    """Serve until a stop signal, or score a file.

    Returns:
        Exit code: 0 after a stop, 1 when the start failed, 3 when workers would not stay up.
        (2 for options that do not exist.) Those of `score-file` stand there.
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
    """What the command line asks for; only what that needs is imported."""
    from service.log import configure_logging
    from service.settings import Settings, load_settings

    if sys.argv[1:2] == ["score-file"]:
        from service.bulk import command

        return partial(command.main, sys.argv[2:], Settings.model_fields["max_body_bytes"].default)
    settings = load_settings(sys.argv[1:], os.environ)
    log = configure_logging(settings.log_level)
    if settings.workers > 1:
        # Without the model's libraries: a supervisor needs neither them nor their memory.
        from service.workers.supervisor import supervise

        return partial(supervise, settings, sys.argv[1:])
    from service.serve import serve

    return partial(serve, settings, log)


if __name__ == "__main__":
    sys.exit(main())
