"""MLServer: a runtime of one's own behind its open inference protocol, with adaptive batching.

A request carries two BYTES tensors of the same length, `query` (repeated) and `ad`: what adaptive
batching can join and take apart again.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.codecs import StringCodec
from mlserver.settings import ModelParameters
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput

from deploy.benchmarks.peers.plain_model import PlainModel, server_arguments


class Ranker(MLModel):  # type: ignore[misc,unused-ignore]
    """Scores the rows of one request, or of several that the framework joined."""

    async def load(self) -> bool:
        """Load the model, in each worker."""
        extra: dict[str, Any] = self.settings.parameters.extra
        self._model = PlainModel(
            Path(extra["model"]), Path(extra["tokenizer"]), extra["threads"], extra["micro_batch"]
        )
        self._executor = ThreadPoolExecutor(extra["runs_at_once"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """One score per row."""
        texts = {tensor.name: StringCodec.decode_input(tensor) for tensor in payload.inputs}
        loop = asyncio.get_running_loop()
        scores = await loop.run_in_executor(
            self._executor, self._score, texts["query"], texts["ad"]
        )
        output = ResponseOutput(name="scores", shape=[len(scores)], datatype="FP64", data=scores)
        return InferenceResponse(model_name=self.name, outputs=[output])

    def _score(self, queries: list[str], ads: list[str]) -> list[float]:
        pairs = list(zip(queries, ads, strict=True))
        return self._model.scores(self._model.encode_pairs(pairs))


async def serve() -> None:
    """Serve until stopped."""
    arguments = server_arguments(
        __doc__, max_batch_requests=0, wait_ms=0.0, workers=0, runs_at_once=1
    )
    settings = Settings(
        host="127.0.0.1",
        http_port=arguments.port,
        grpc_port=0,
        metrics_endpoint=None,
        parallel_workers=arguments.workers,
        debug=False,
    )
    extra = {
        "model": str(arguments.model),
        "tokenizer": str(arguments.tokenizer),
        "threads": arguments.threads,
        "micro_batch": arguments.micro_batch,
        "runs_at_once": arguments.runs_at_once,
    }
    model = ModelSettings(
        name="ranker",
        implementation="deploy.benchmarks.peers.mlserver_server.Ranker",
        max_batch_size=arguments.max_batch_requests,
        max_batch_time=arguments.wait_ms / 1000,
        parameters=ModelParameters(extra=extra),
    )
    await MLServer(settings).start([model])


if __name__ == "__main__":
    asyncio.run(serve())
