"""LitServe: worker processes, and batches of whole requests."""

import argparse
import itertools
from typing import Any

import litserve
from fastapi import Request

from deploy.benchmarks.peers.plain_model import load_model, server_arguments


class Ranker(litserve.LitAPI):  # type: ignore[misc,unused-ignore]
    """Scores one request, or several joined to a batch."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(
            max_batch_size=arguments.max_batch_requests,
            batch_timeout=arguments.wait_ms / 1000,
            api_path="/score",
        )
        self._arguments = arguments

    def setup(self, device: str) -> None:  # noqa: ARG002  # the framework's signature
        """Load the model, in each worker."""
        self._model = load_model(self._arguments)

    def decode_request(self, request: Request) -> list[Any]:
        """Pairs of a body, which the framework hands over where it says `Request`."""
        return self._model.encode(request["query"], request["ads"])

    def batch(self, inputs: list[list[Any]]) -> list[list[Any]]:
        """Left as they are: `predict` needs to know whose pairs are whose."""
        return inputs

    def predict(self, x: list[Any]) -> Any:  # noqa: ANN401  # as the framework's own
        """Scores of one request, or of each of a batch."""
        if self._arguments.max_batch_requests == 1:
            return self._model.scores(x)
        scores = iter(self._model.scores(list(itertools.chain.from_iterable(x))))
        return [list(itertools.islice(scores, len(pairs))) for pairs in x]

    def unbatch(self, output: list[list[float]]) -> list[list[float]]:
        """One answer per request."""
        return output

    def encode_response(self, output: list[float]) -> dict[str, list[float]]:
        """The answer's body."""
        return {"scores": output}


def main() -> None:
    """Serve until stopped."""
    arguments = server_arguments(
        __doc__, max_batch_requests=1, wait_ms=0.0, workers=1, fast_queue=0
    )
    server = litserve.LitServer(
        Ranker(arguments),
        accelerator="cpu",
        workers_per_device=arguments.workers,
        fast_queue=bool(arguments.fast_queue),
    )
    server.run(
        host="127.0.0.1", port=arguments.port, generate_client_file=False, log_level="warning"
    )


if __name__ == "__main__":
    main()
