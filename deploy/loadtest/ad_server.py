"""locust's user: an ad server with one connection or more, and what all of them are counted in."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import locust.log
from gevent.pool import Group
from locust import FastHttpUser, task
from locust.env import Environment

from deploy.benchmarks.poisson_arrivals import endless_arrivals_s
from deploy.loadtest.ad_traffic import AdTraffic
from deploy.loadtest.answer_verdict import OK, Verdict, judge
from deploy.loadtest.goodput import GoodputTotals
from deploy.loadtest.locust_options import KEY_VARIABLE
from deploy.loadtest.request_record import RecordWriter, RequestRecord
from deploy.loadtest.target import key_headers

SCORE_ROUTE = "/v1/score"

STRAGGLERS_S = 5.0  # how long an answer is waited for after the caller's patience, to be counted
MAX_UNDER_WAY = 900  # requests of one process; under the 1,000 connections that the service takes
RETRY_S = 0.05  # before a closed-loop user that got no scores asks again: nobody hammers at a 429
MS_PER_S = 1000

logger = logging.getLogger(__name__)
traffic = AdTraffic()
user_numbers = itertools.count()


class Run:
    """All that outlives a user: what was counted, and what is still under way."""

    def __init__(self) -> None:
        self.totals = GoodputTotals()
        self.under_way = Group()
        self.record: RecordWriter | None = None
        self.is_ending = False
        # Instants are taken from the steady clock, and told as those of the wall.
        self._epoch_s = time.time() - time.perf_counter()

    def start(self, record_folder: Path | None, process: int) -> None:
        """Begin with nothing counted."""
        self.totals.reset()
        self.is_ending = False
        if record_folder is not None:
            now_s = self._epoch_s + time.perf_counter()
            self.record = RecordWriter(record_folder, process, now_s)

    def close(self) -> None:
        """What was noted is complete."""
        if self.record is not None:
            self.record.close()
            self.record = None

    def count(
        self, verdict: Verdict, status: int, due_s: float, sent_s: float, latency_ms: float
    ) -> None:
        """Count one answer, and note it where that is asked for."""
        self.totals.add(verdict.pairs)
        if self.record is None:
            return
        self.record.write(
            RequestRecord(
                due_s=self._epoch_s + due_s,
                sent_s=self._epoch_s + sent_s,
                answered_s=self._epoch_s + due_s + latency_ms / MS_PER_S,
                status=status,
                pairs=dict(verdict.pairs),
                cached_pairs=verdict.cached_pairs,
                failure=verdict.failure,
            )
        )


run = Run()


def parsed(environment: Environment) -> Any:  # noqa: ANN401  # argparse's namespace
    """The options; locust was started from its command line."""
    assert environment.parsed_options is not None  # noqa: S101  # see above
    return environment.parsed_options


def patience_ms(options: Any) -> float:  # noqa: ANN401  # argparse's namespace
    """How long a caller waits for an answer."""
    return float(options.timeout_ms + options.network_ms)


class AdServer(FastHttpUser):
    """An ad server: keeps its connections open, and asks at its own instants or in turn."""

    concurrency = MAX_UNDER_WAY
    insecure = False  # whoever has no certificate for its name gets no key

    def __init__(self, environment: Environment) -> None:
        self._options = parsed(environment)
        self._patience_ms = patience_ms(self._options)
        self.network_timeout = self._patience_ms / MS_PER_S + STRAGGLERS_S
        self.connection_timeout = self.network_timeout
        super().__init__(environment)
        # Every process of a distributed run counts from 0, but no two users ask the same.
        process = getattr(environment.runner, "worker_index", 0)
        self._name = f"load-{process}-{next(user_numbers)}"
        seed = f"{self._options.seed} {self._name}"
        self._rng = random.Random(seed)  # noqa: S311  # the same requests in every run
        key = os.environ.get(KEY_VARIABLE)
        self._headers = {"Content-Type": "application/json", **key_headers(key)}
        self._sent = itertools.count()
        self._due_s = time.perf_counter()
        self._dues_s: Iterator[float] | None = None
        if self._options.user_rps:
            arrivals_s = endless_arrivals_s(self._options.user_rps, f"{seed} arrivals")
            self._dues_s = map(self._due_s.__add__, arrivals_s)
            self._due_s = next(self._dues_s)

    def wait_time(self) -> float:
        """Seconds until the next request."""
        return max(0.0, self._due_s - time.perf_counter())

    @task
    def score(self) -> None:
        """Send what is due. An open loop does not wait for the answer."""
        if run.is_ending:
            gevent.sleep(1)  # nothing more is asked; locust ends its users soon
        elif self._dues_s is None:
            asked = self._send(time.perf_counter())
            asked.join()
            self._due_s = time.perf_counter() + (0.0 if asked.value else RETRY_S)
        elif self._due_s <= time.perf_counter():
            # One at a time, also when several are due: answers and the end need turns too.
            self._send(self._due_s)
            self._due_s = next(self._dues_s)

    def _send(self, due_s: float) -> gevent.Greenlet:
        """Ask in a greenlet that goes on when this user is told to stop."""
        options = self._options
        body = traffic.request_body(
            self._rng, options.ads, options.timeout_ms, f"{self._name}-{next(self._sent)}"
        )
        asked = run.under_way.spawn(self._ask, body, due_s)
        broken = locust.log.greenlet_exception_logger(logger)  # type: ignore[no-untyped-call]  # locust's
        asked.link_exception(broken)
        return asked

    def _ask(self, body: dict[str, Any], due_s: float) -> bool:
        """Judge the answer as an auction would that began when the request was due.

        Returns:
            Whether there were scores.
        """
        ad_ids = [ad["id"] for ad in body["ads"]]
        sent_s = time.perf_counter()
        if len(run.under_way) > MAX_UNDER_WAY:
            self._give_up(due_s, sent_s, len(ad_ids))
            return False
        with self.client.post(
            SCORE_ROUTE, data=json.dumps(body), headers=self._headers, catch_response=True
        ) as response:
            response.request_meta["response_time"] += (sent_s - due_s) * MS_PER_S
            latency_ms: float = response.request_meta["response_time"]
            status: int = response.status_code
            verdict = judge(status, response.content or b"", latency_ms, self._patience_ms, ad_ids)
            if verdict.failure is None:
                response.success()
            else:
                response.failure(verdict.failure)
        run.count(verdict, status, due_s, sent_s, latency_ms)
        return status == OK

    def _give_up(self, due_s: float, now_s: float, n_ads: int) -> None:
        """An arrival that would be one too many under way; a service that refuses has few."""
        failure = f"not sent: {MAX_UNDER_WAY} requests are under way"
        latency_ms = (now_s - due_s) * MS_PER_S
        self.environment.events.request.fire(
            request_type="POST",
            name=SCORE_ROUTE,
            response_time=latency_ms,
            response_length=0,
            exception=failure,
            context={},
        )
        run.count(Verdict(Counter({"failed": n_ads}), failure), 0, due_s, now_s, latency_ms)
