"""FastAPI and ONNX Runtime with nothing between: each request is a batch of its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from deploy.benchmarks.peers.plain_model import load_model, server_arguments


class Body(BaseModel):
    """One query and its ads."""

    query: str
    ads: list[str]


def main() -> None:
    """Serve until stopped."""
    arguments = server_arguments(__doc__, runs_at_once=1)
    model = load_model(arguments)
    executor = ThreadPoolExecutor(arguments.runs_at_once)
    app = FastAPI()

    @app.post("/score")
    async def score(body: Body) -> dict[str, list[float]]:
        loop = asyncio.get_running_loop()
        return {
            "scores": await loop.run_in_executor(executor, model.score_ads, body.query, body.ads)
        }

    uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
