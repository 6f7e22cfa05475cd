"""The same model and traffic through what one would otherwise pick, and through adrel.

    .venv/bin/python -m deploy.benchmarks.peers.run_peers --adrel adrel=bundles/default

Each round measures every server once, one at a time; the table has the medians. The first run
installs each peer from PyPI into an environment of its own in the work folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from deploy.benchmarks.mixed_pairs import mixed_requests
from deploy.benchmarks.peers.contenders import Contender, adrel, peers
from deploy.benchmarks.peers.environments import PACKAGES, install, versions
from deploy.benchmarks.peers.measure import Figures, Load, WrongAnswer, measure, measure_limit
from deploy.benchmarks.peers.models import ModelFiles, make_models
from deploy.benchmarks.peers.plain_bundle import make_plain_bundle
from deploy.benchmarks.peers.report import RowName, as_json, draw, table
from deploy.benchmarks.server_process import ROOT, NotServing

REQUESTS_PER_S = 80  # more than any server here can answer: no request comes twice
LIMIT: RowName = ("limit", "bare ONNX Runtime, plain int8")


def main() -> None:
    """Install, measure round by round, print the table, write the JSON and the plot."""
    arguments = _arguments()
    work: Path = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    files = make_models(work)
    names = _installed(work, arguments.peers.split(","), arguments.no_install)
    contenders = _contenders(work, files, names, arguments)
    load = Load(
        requests=mixed_requests(
            Tokenizer.from_file(str(files.tokenizer)),
            arguments.seed,
            n_requests=int(REQUESTS_PER_S * arguments.seconds * 1.25),
            n_ads=arguments.ads,
        ),
        callers=arguments.callers,
        seconds=arguments.seconds,
    )
    measures: dict[RowName, Callable[[], Figures]] = {
        (one.name, one.setting): _measure_later(one, load, files, work) for one in contenders
    }
    if not arguments.no_limit:
        measures[LIMIT] = lambda: measure_limit(files, arguments.ads, arguments.seconds)
    results, reasons = _rounds(measures, arguments.rounds)
    print(table(results))
    for row, reason in reasons.items():
        print(f"{' '.join(row)} did not run: {reason}")
    options = ("callers", "ads", "seconds", "rounds", "seed")
    report = as_json(
        results,
        reasons,
        {name: getattr(arguments, name) for name in options},
        {name: versions(work, name) for name in names},
    )
    (work / "results.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    draw(results, work / "results.png")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "peers", help="folder")
    parser.add_argument("--peers", default=",".join(PACKAGES), help="names, by comma")
    parser.add_argument("--all-settings", action="store_true", help="not only each peer's best")
    parser.add_argument("--no-install", action="store_true", help="the environments are there")
    parser.add_argument("--no-limit", action="store_true", help="leave bare ONNX Runtime out")
    parser.add_argument("--adrel", action="append", default=[], metavar="NAME=BUNDLE")
    parser.add_argument(
        "--adrel-env",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for adrel; by default its cache is off",
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=15.0, help="of load, for each server")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--ads", type=int, default=20, help="in each request")
    parser.add_argument("--seed", type=int, default=1, help="which requests")
    return parser.parse_args()


def _installed(work: Path, names: Sequence[str], no_install: bool) -> list[str]:
    """The peers that can be measured; says why one cannot."""
    installed = []
    for name in filter(None, names):
        try:
            if not no_install:
                print(f"installing {name}", flush=True)
                install(work, name)
            versions(work, name)
        except (OSError, subprocess.SubprocessError, KeyError) as error:
            print(f"{name} is left out: its installation fails or is not there ({error!r})")
        else:
            installed.append(name)
    return installed


def _contenders(
    work: Path, files: ModelFiles, names: Sequence[str], arguments: argparse.Namespace
) -> list[Contender]:
    found = [one for name in names for one in peers(work, files, name, arguments.all_settings)]
    environ = dict(pair.split("=", 1) for pair in arguments.adrel_env or ["ADREL_CACHE_BYTES=0"])
    same_graph = work / "plain_int8_bundle"
    if not same_graph.exists():
        make_plain_bundle(work / "fp32", files.int8, same_graph)
    found.append(adrel("adrel, plain int8", same_graph, environ, files))
    for pair in arguments.adrel:
        name, bundle = pair.split("=", 1)
        found.append(adrel(name, Path(bundle).resolve(), environ, files))
    return found


def _measure_later(
    contender: Contender, load: Load, files: ModelFiles, work: Path
) -> Callable[[], Figures]:
    log_file = work / f"{contender.name}.log"
    return lambda: measure(contender, load, files.tokenizer, log_file)


def _rounds(
    measures: dict[RowName, Callable[[], Figures]], n_rounds: int
) -> tuple[dict[RowName, list[Figures]], dict[RowName, str]]:
    """Figures of each row, and for rows that failed the reason; those are not tried again."""
    results: dict[RowName, list[Figures]] = {row: [] for row in measures}
    reasons: dict[RowName, str] = {}
    for number in range(n_rounds):
        for row, measure_row in measures.items():
            if row in reasons:
                continue
            try:
                figures = measure_row()
            except (NotServing, WrongAnswer) as error:
                reasons[row] = f"{type(error).__name__}: {error}"
            except subprocess.SubprocessError as error:
                reasons[row] = type(error).__name__  # its text has paths of this machine
            else:
                results[row].append(figures)
                print(f"round {number + 1} {' '.join(row)}: {figures.pairs_per_s:.0f}", flush=True)
    return results, reasons


if __name__ == "__main__":
    main()
