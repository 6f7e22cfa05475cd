"""A worker process; started by the supervisor, never by hand."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Serve until the supervisor says stop, or is gone.

    Returns:
        Exit code: 0 after a stop, 1 when the start failed.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # reloads are the supervisor's
    from service.workers.spec import WorkerSpec

    spec, settings_argv = WorkerSpec.from_json(sys.argv[1]), sys.argv[2:]
    if spec.share.cores:
        # Before the libraries are loaded that count cores to make threads.
        os.sched_setaffinity(0, spec.share.cores)

    from service.log import configure_logging
    from service.settings import load_settings
    from service.startup_errors import StartupError
    from service.workers.worker import serve

    try:
        settings = load_settings(settings_argv, os.environ)
        log = configure_logging(settings.log_level, worker=spec.number)
        serve(settings, spec, log)
    except StartupError as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
