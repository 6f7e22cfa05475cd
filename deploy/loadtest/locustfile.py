"""Users that act like an ad server against `POST /v1/score`. README.md says how to use it.

Here is only what concerns locust: options, users, statistics. What is asked is in ad_traffic.py,
what an answer is worth in answer_verdict.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from typing import Any

from locust import FastHttpUser, constant_throughput, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import WorkerRunner

from deploy.loadtest.ad_traffic import ADS_PER_TOPIC, AdTraffic
from deploy.loadtest.answer_verdict import judge
from deploy.loadtest.goodput import GoodputTotals

SCORE_ROUTE = "/v1/score"
REPORT_KEY = "adrel_pairs"

traffic = AdTraffic()
totals = GoodputTotals()
user_numbers = itertools.count()


def _number_of_ads(text: str) -> int:
    n_ads = int(text)
    if not 1 <= n_ads <= ADS_PER_TOPIC:
        raise argparse.ArgumentTypeError(f"{n_ads} is not in 1-{ADS_PER_TOPIC}")
    return n_ads


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _add_options(parser: LocustArgumentParser) -> None:
    add = parser.add_argument_group("ad server").add_argument
    add("--ads", type=_number_of_ads, default=20, metavar="N", help="ads in a request")
    add("--timeout-ms", type=float, default=150.0, metavar="MS", help="timeout_ms of each request")
    add(
        "--network-ms",
        type=float,
        default=5.0,
        metavar="MS",
        help="what the caller grants the network on top; an answer after that is lost",
    )
    add(
        "--user-rps",
        type=float,
        default=0.0,
        metavar="RATE",
        help="requests a second of each user; 0: the next as soon as one is answered",
    )
    add("--seed", type=int, default=1, metavar="N", help="same seed, same requests")


class AdServer(FastHttpUser):
    """One keep-alive connection of an ad server, with one request at a time on it."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        options = environment.parsed_options
        assert options is not None  # noqa: S101  # locust was started from its command line
        self._options = options
        # Every process of a distributed run counts from 0, but no two users ask the same.
        process = getattr(environment.runner, "worker_index", 0)
        self._name = f"load-{process}-{next(user_numbers)}"
        self._rng = random.Random(f"{options.seed} {self._name}")  # noqa: S311
        self._pace = constant_throughput(options.user_rps) if options.user_rps > 0 else None
        self._sent = itertools.count()

    def wait_time(self) -> float:
        """Seconds until the next request."""
        return self._pace(self) if self._pace else 0.0

    @task
    def score(self) -> None:
        """Ask for scores and judge the answer as an auction would."""
        options = self._options
        body = traffic.request_body(
            self._rng, options.ads, options.timeout_ms, f"{self._name}-{next(self._sent)}"
        )
        with self.client.post(
            SCORE_ROUTE,
            data=json.dumps(body),
            headers={"Content-Type": "application/json"},
            catch_response=True,
        ) as response:
            verdict = judge(
                response.status_code,
                response.content or b"",
                elapsed_ms=response.request_meta["response_time"],
                patience_ms=options.timeout_ms + options.network_ms,
                n_ads=options.ads,
            )
            totals.add(verdict.pairs)
            if verdict.failure is None:
                response.success()
            else:
                response.failure(verdict.failure)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _start_from_nothing(**_: Any) -> None:  # noqa: ANN401  # locust passes what it likes
    totals.reset()


@events.report_to_master.add_listener  # type: ignore[untyped-decorator]
def _report(data: dict[str, Any], **_: Any) -> None:  # noqa: ANN401
    data[REPORT_KEY] = totals.take()


@events.worker_report.add_listener  # type: ignore[untyped-decorator]
def _merge(data: dict[str, Any], **_: Any) -> None:  # noqa: ANN401
    totals.merge(data.get(REPORT_KEY, {}))


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _print_summary(environment: Environment, **_: Any) -> None:  # noqa: ANN401
    # A worker has handed its counts to the master, which speaks for all.
    if isinstance(environment.runner, WorkerRunner):
        return
    stats = environment.stats.total
    duration_s = (stats.last_request_timestamp or 0) - stats.start_time
    print(totals.summary(max(0.0, duration_s)))
