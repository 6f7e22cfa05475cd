"""Clients and integrations as their makers publish them, against a running service.

    .venv/bin/python -m deploy.clients.published.check_published --url http://127.0.0.1:8000

Each is installed into an environment of its own in `build/published-clients`, with the newest
versions that pip finds, and must give the scores of `POST /v1/score`. Exit code 1 where one does
not. Needs a package index; some gigabytes in all, so name those that you care about by `--only`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import httpx

QUERY = "best running shoes for marathons"
ADS = ["Cheap printer ink outlet", "Nike Marathon Elite Shoes - 20% Off", "Running gear"]

CLIENTS = {
    "cohere_v1": "cohere",
    "cohere_v2": "cohere",
    "infinity_client": "infinity_client",
    "langchain_cohere": "langchain-cohere",
    "langchain_jina": "langchain-community",
    "litellm_cohere": "litellm",
    "litellm_infinity": "litellm",
    "litellm_jina": "litellm",
    "litellm_vllm": "litellm",
    "llama_index_cohere": "llama-index-postprocessor-cohere-rerank",
    "llama_index_jina": "llama-index-postprocessor-jinaai-rerank",
    "llama_index_tei": "llama-index-postprocessor-tei-rerank",
    "tritonclient": "tritonclient[http]",
}
"""What each needs from the package index; those of one package share an environment."""

SCRIPT = Path(__file__).with_name("ask.py")
INSTALL_S, ASK_S = 900, 120
SAME = 1e-6  # some of them keep 32 bits of a score


def main() -> None:
    """Install, ask, compare, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True, help="the service")
    parser.add_argument("--work", type=Path, default=Path("build/published-clients"))
    parser.add_argument("--only", choices=sorted(CLIENTS), action="append", help="repeatable")
    options = parser.parse_args()
    try:
        expected = our_ranking(options.url)
    except httpx.HTTPError as error:
        sys.exit(f"no scores from {options.url}: {error}")
    print("| client | version | MB | result |\n|---|---|---|---|")
    failed = False
    for name in options.only or CLIENTS:
        folder = options.work / CLIENTS[name]
        try:
            version = install(folder, CLIENTS[name])
            verdict = difference(expected, ask(folder, name, options.url))
        except subprocess.SubprocessError as error:
            version, verdict = "", _last_line(error)
        failed |= verdict != "same"
        print(f"| {name} | {version} | {_megabytes(folder)} | {verdict} |", flush=True)
    sys.exit(failed)


def our_ranking(url: str) -> list[tuple[int, float]]:
    """Index and score of each ad, by our own API, the best first."""
    ads = [{"id": str(index), "text": text} for index, text in enumerate(ADS)]
    answer = httpx.post(f"{url}/v1/score", json={"query": QUERY, "ads": ads}, timeout=30)
    scores = [ad["score"] for ad in answer.raise_for_status().json()["scores"]]
    return sorted(enumerate(scores), key=lambda entry: -entry[1])


def install(folder: Path, package: str) -> str:
    """Make the environment where it is not there.

    Returns:
        The version that is installed.

    Raises:
        subprocess.SubprocessError: It failed, or took longer than `INSTALL_S`.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        _run(INSTALL_S, sys.executable, "-m", "venv", str(folder))
    _run(INSTALL_S, str(python), "-m", "pip", "install", "--quiet", package)
    package = package.partition("[")[0]
    return _run(
        60, str(python), "-c", f"import importlib.metadata as m; print(m.version({package!r}))"
    )


def ask(folder: Path, name: str, url: str) -> list[tuple[int, float]]:
    """The ranking that a client gives, from its own process.

    Raises:
        subprocess.SubprocessError: It failed, or took longer than `ASK_S`.
    """
    answer = _run(
        ASK_S, str(folder / "bin" / "python"), "-I", str(SCRIPT), name, url, QUERY, json.dumps(ADS)
    )
    return [(index, score) for index, score in json.loads(answer.splitlines()[-1])]


def difference(expected: list[tuple[int, float]], got: list[tuple[int, float]]) -> str:
    """`same`, or what is not."""
    if [index for index, _ in got] != [index for index, _ in expected]:
        return f"another order: {got}"
    worst = max(abs(ours - theirs) for (_, ours), (_, theirs) in zip(expected, got, strict=True))
    return "same" if worst <= SAME else f"scores off by up to {worst:.3g}"


def _run(timeout_s: float, *command: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own arguments
        command, check=True, timeout=timeout_s, capture_output=True, text=True
    )
    return done.stdout.strip()


def _last_line(error: subprocess.SubprocessError) -> str:
    lines = str(getattr(error, "stderr", "") or error).strip().splitlines()
    return lines[-1][:300]


def _megabytes(folder: Path) -> int:
    files = (path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
    return round(sum(files) / 1e6)


if __name__ == "__main__":
    main()
