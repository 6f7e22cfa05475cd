"""What the benchmarks of the service share: its process, its traffic, what they leave behind."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from deploy.benchmarks.http_connection import Address
from deploy.benchmarks.load_client import prepare
from deploy.benchmarks.machine import machine_facts
from deploy.benchmarks.mixed_pairs import LONGEST_TOKENS, MixedRequest, mixed_requests
from deploy.benchmarks.server_process import running

HOST = "127.0.0.1"
ROUTE = "/v1/score"


def arguments(description: str | None, **options: float) -> argparse.Namespace:
    """The options that all have, and a benchmark's own numeric ones."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, default=Path("bundles/default"))
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"), help="folder")
    for name, default in options.items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


def traffic(
    bundle: Path,
    n_requests: int,
    n_ads: int,
    seed: int = 1,
    longest_tokens: int = LONGEST_TOKENS,
) -> list[MixedRequest]:
    """Requests with pairs of 8 to 64 tokens, no pair twice."""
    tokenizer = Tokenizer.from_file(str(bundle / "tokenizer.json"))
    return mixed_requests(tokenizer, seed, n_requests, n_ads, longest_tokens)


def body(request: MixedRequest, timeout_ms: float, priority: str = "auction") -> bytes:
    """What an ad server sends."""
    fields = {
        "query": request.query,
        "ads": [{"id": str(i), "text": text} for i, text in enumerate(request.ads)],
        "timeout_ms": timeout_ms,
        "priority": priority,
    }
    return json.dumps(fields).encode()


def prepared(requests: Sequence[MixedRequest], address: Address, timeout_ms: float) -> list[bytes]:
    """Each request as the bytes that go over the wire."""
    return [prepare(*address, ROUTE, body(request, timeout_ms)) for request in requests]


@contextlib.contextmanager
def service(bundle: Path, **environ: str) -> Iterator[Address]:
    """The service in a process of its own, for as long as the block takes."""
    command = [sys.executable, "-m", "service", "--log-level", "error"]
    command += ["--bundle", str(bundle.resolve())]
    probe = body(MixedRequest("ready", ["yes"]), 10_000)
    with (
        tempfile.NamedTemporaryFile(suffix=".log") as log,
        running(command, environ, Path(log.name), ROUTE, probe) as port,
    ):
        yield HOST, port


def metrics(address: Address) -> dict[str, float]:
    """The service's metrics by sample, as `name{label="value"}`."""
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=30)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def save(out: Path, name: str, results: Mapping[str, Any], draw: Callable[[Any], None]) -> None:
    """Write `name.json`, with the machine it was measured on, and `name.png`.

    Args:
        out: Folder, made where it is not there.
        name: Of both files.
        results: What was measured.
        draw: Draws it on the figure that it is given.
    """
    import matplotlib  # noqa: PLC0415  # slow to load, and of no use before the end

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    whole = {"machine": machine_facts(), "command": " ".join(sys.argv[1:]), **results}
    (out / f"{name}.json").write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    figure = pyplot.figure(figsize=(9, 4.5), layout="constrained")
    draw(figure)
    figure.savefig(out / f"{name}.png", dpi=120)
    pyplot.close(figure)
    print(f"wrote {name}.json and {name}.png to {out}")
