"""mosec: a Rust front, worker processes, and batches of whole requests."""

from __future__ import annotations

import argparse
import itertools
import os
from typing import Any, ClassVar

import mosec

from deploy.benchmarks.peers.plain_model import load_model, server_arguments


class Ranker(mosec.Worker):  # type: ignore[misc,unused-ignore]
    """Scores one request, or several joined to a batch."""

    arguments: ClassVar[argparse.Namespace]  # the framework makes the workers, from the class

    def __init__(self) -> None:
        super().__init__()
        self._model = load_model(self.arguments)

    def forward(self, data: Any) -> Any:  # noqa: ANN401  # as the framework's own
        """Scores of a body, or of each of a batch of them."""
        if self.arguments.max_batch_requests == 1:
            return {"scores": self._model.score_ads(data["query"], data["ads"])}
        pairs = [self._model.encode(body["query"], body["ads"]) for body in data]
        scores = iter(self._model.scores(list(itertools.chain.from_iterable(pairs))))
        return [{"scores": list(itertools.islice(scores, len(of_one)))} for of_one in pairs]


def main() -> None:
    """Serve until stopped; the framework reads `--port` by itself."""
    Ranker.arguments = server_arguments(__doc__, max_batch_requests=1, wait_ms=0.0, workers=1)
    os.environ["MOSEC_ADDRESS"] = "127.0.0.1"
    server = mosec.Server()
    runtime = mosec.Runtime(
        Ranker,
        num=Ranker.arguments.workers,
        max_batch_size=Ranker.arguments.max_batch_requests,
        max_wait_time=int(Ranker.arguments.wait_ms),
        start_method="fork",  # the children inherit `Ranker.arguments`
    )
    server.register_runtime({"/score": [runtime]})
    server.run()


if __name__ == "__main__":
    main()
