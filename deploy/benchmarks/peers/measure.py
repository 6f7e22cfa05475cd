"""One server under closed-loop load, after its scores were found to be those of the model."""

from __future__ import annotations

import asyncio
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deploy.benchmarks.load_client import (
    Exchange,
    answered_per_s,
    closed_loop,
    latencies_ms,
    percentile,
    prepare,
)
from deploy.benchmarks.mixed_pairs import MixedRequest
from deploy.benchmarks.peers.contenders import Contender
from deploy.benchmarks.peers.models import ModelFiles
from deploy.benchmarks.peers.plain_model import PlainModel
from deploy.benchmarks.server_process import running
from service.scoring.calibration import sigmoid

WARM_UP_S = 3.0
N_CHECKED = 3  # requests whose scores are compared
HOST = "127.0.0.1"


class WrongAnswer(Exception):
    """A server answered something other than the scores of this model."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one round gave.

    Attributes:
        pairs_per_s: Scored pairs whose answers came within the time.
        p50_ms: Median latency of a request; nan for the limit, which has none.
        p99_ms: The same for the slowest hundredth.
        failed: Requests without a 200.
        worst_score: Largest difference of a score from the same pair alone in the same graph.
        mean_score: The mean difference.
    """

    pairs_per_s: float
    p50_ms: float
    p99_ms: float
    failed: int
    worst_score: float
    mean_score: float


@dataclass(frozen=True, slots=True)
class Load:
    """How a server is loaded."""

    requests: Sequence[MixedRequest]
    callers: int
    seconds: float


def measure(contender: Contender, load: Load, tokenizer: Path, log_file: Path) -> Figures:
    """Start, check, warm up, measure, stop.

    Raises:
        NotServing: It did not start.
        WrongAnswer: Its scores are not those of the model.
    """
    checked = load.requests[:N_CHECKED]
    n_ads = len(checked[0].ads)
    reference = _reference(contender, tokenizer, checked)
    bodies = [contender.body_bytes(request) for request in load.requests]
    with running(contender.command, contender.environ, log_file, contender.path, bodies[0]) as port:
        prepared = [prepare(HOST, port, contender.path, body) for body in bodies]
        address = (HOST, port)
        warm_up = prepared[: len(prepared) // 5]
        first = asyncio.run(closed_loop(address, warm_up, load.callers, WARM_UP_S))
        worst, mean = _compare(contender, first, reference, n_ads)
        measured = prepared[len(warm_up) :]
        exchanges = asyncio.run(closed_loop(address, measured, load.callers, load.seconds))
    _check(contender, exchanges, n_ads)
    latencies = latencies_ms(exchanges)
    return Figures(
        pairs_per_s=answered_per_s(exchanges, load.seconds) * n_ads,
        p50_ms=percentile(latencies, 50),
        p99_ms=percentile(latencies, 99),
        failed=sum(exchange.status != 200 for exchange in exchanges),
        worst_score=worst,
        mean_score=mean,
    )


def measure_limit(files: ModelFiles, n_ads: int, seconds: float) -> Figures:
    """Pairs per second of bare ONNX Runtime; see `limit.py`.

    Raises:
        subprocess.SubprocessError: It failed.
    """
    command = [sys.executable, "-m", "deploy.benchmarks.peers.limit", "--model", str(files.int8)]
    command += ["--tokenizer", str(files.tokenizer), "--ads", str(n_ads)]
    done = subprocess.run(  # noqa: S603  # our own program
        [*command, "--seconds", str(seconds)], check=True, capture_output=True, timeout=seconds + 60
    )
    return Figures(json.loads(done.stdout)["pairs_per_s"], math.nan, math.nan, 0, 0.0, 0.0)


def _reference(
    contender: Contender, tokenizer: Path, requests: Sequence[MixedRequest]
) -> list[list[float]]:
    """Scores of each pair in a run of its own."""
    model = PlainModel(contender.reference, tokenizer, threads=1)
    calibration = contender.calibration
    return [
        [
            float(score)
            for pair in model.encode(request.query, request.ads)
            for score in sigmoid(calibration.to_log_odds(np.array(model.logits([pair]))))
        ]
        for request in requests
    ]


def _compare(
    contender: Contender,
    exchanges: Sequence[Exchange],
    reference: Sequence[Sequence[float]],
    n_ads: int,
) -> tuple[float, float]:
    """Largest and mean difference of the checked requests' scores, as given under load."""
    scores = _check(contender, exchanges, n_ads)
    differences = []
    for index, wanted in enumerate(reference):
        if index not in scores:
            raise WrongAnswer("too slow to answer even the first requests")
        differences += [abs(a - b) for a, b in zip(scores[index], wanted, strict=True)]
    if not max(differences) <= contender.tolerance:
        raise WrongAnswer(f"a score is off by {max(differences):.3g}")
    return max(differences), statistics.mean(differences)


def _check(
    contender: Contender, exchanges: Sequence[Exchange], n_ads: int
) -> dict[int, list[float]]:
    """Scores by the request's index; every answer must have one of 0-1 for each ad."""
    scores = {}
    for exchange in exchanges:
        if exchange.status == 200:
            one = contender.scores(json.loads(exchange.body))
            if len(one) != n_ads or not all(0 <= score <= 1 for score in one):
                raise WrongAnswer(f"not {n_ads} scores of 0-1: {exchange.body[:200]!r}")
            scores[exchange.index] = one
    return scores
