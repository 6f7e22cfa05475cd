"""Users that act like an ad server against `POST /v1/score`. README.md says how to use it.

Here is what concerns locust's run: options, the number of users, events. What a user does is in
ad_server.py, what is asked in ad_traffic.py, what an answer is worth in answer_verdict.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import locust.log
from locust import LoadTestShape, events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from deploy.loadtest.ad_server import MS_PER_S, STRAGGLERS_S, AdServer, parsed, patience_ms, run
from deploy.loadtest.locust_options import add_options
from deploy.loadtest.target import NoTarget, checked_url
from deploy.loadtest.user_counts import users_at

__all__ = ["AdServer", "UserCount"]  # what locust looks for

REPORT_KEY = "adrel_pairs"


class UserCount(LoadTestShape):
    """The number of users by `--shape`."""

    use_common_options = True

    def tick(self) -> tuple[int, float] | None:
        """Users, and how many of them come or go in a second; asked every second."""
        assert self.runner is not None  # noqa: S101  # locust sets it before it asks
        options = parsed(self.runner.environment)
        goal, base = options.num_users or 1, options.base_users
        elapsed_s = self.get_run_time()  # type: ignore[no-untyped-call]  # locust's
        users = users_at(options.shape, elapsed_s, options.run_time, base, goal)
        if users is None:
            return None
        if options.shape == "steady":
            return users, options.spawn_rate or 1
        return users, max(goal, base)  # the shape says when: all of them at once


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _add_options(parser: LocustArgumentParser) -> None:
    add_options(parser)


@events.init.add_listener  # type: ignore[untyped-decorator]
def _refuse(environment: Environment, **_: Any) -> None:  # noqa: ANN401  # locust passes what it likes
    """End at once where the options cannot work or the host may not be loaded."""
    if isinstance(environment.runner, WorkerRunner):
        return  # it gets its options from the master
    options = parsed(environment)
    if options.headless and options.shape != "steady" and not options.run_time:
        sys.exit(f"--shape {options.shape} needs --run-time")
    if options.headless or environment.host:
        _check_host(environment)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _start_from_nothing(environment: Environment, **_: Any) -> None:  # noqa: ANN401
    _check_host(environment)  # locust's page can have changed it
    asks_itself = not isinstance(environment.runner, MasterRunner)
    folder = parsed(environment).record if asks_itself else None
    run.start(Path(folder) if folder else None, getattr(environment.runner, "worker_index", 0))


def _check_host(environment: Environment) -> None:
    try:
        checked_url(environment.host or "", host_is_mine=parsed(environment).host_is_mine)
    except NoTarget as error:
        sys.exit(f"--host: {error}")


@events.test_stopping.add_listener  # type: ignore[untyped-decorator]
def _finish(environment: Environment, **_: Any) -> None:  # noqa: ANN401
    """Ask nothing more; what was asked is answered before the run is over."""
    run.is_ending = True
    run.under_way.join(patience_ms(parsed(environment)) / MS_PER_S + STRAGGLERS_S)


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def _close_record(**_: Any) -> None:  # noqa: ANN401
    run.close()


@events.report_to_master.add_listener  # type: ignore[untyped-decorator]
def _report(data: dict[str, Any], **_: Any) -> None:  # noqa: ANN401
    data[REPORT_KEY] = run.totals.take()


@events.worker_report.add_listener  # type: ignore[untyped-decorator]
def _merge(data: dict[str, Any], **_: Any) -> None:  # noqa: ANN401
    run.totals.merge(data.get(REPORT_KEY, {}))


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _tell(environment: Environment, **_: Any) -> None:  # noqa: ANN401
    # A worker has handed its counts to the master, which speaks for all.
    if environment.runner is None or isinstance(environment.runner, WorkerRunner):
        return
    stats = environment.stats.total
    duration_s = (stats.last_request_timestamp or 0) - stats.start_time
    print(run.totals.summary(max(0.0, duration_s)))
    broken = environment.runner.exceptions or locust.log.unhandled_greenlet_exception
    environment.process_exit_code = int(bool(broken) or not run.totals.is_sound())
