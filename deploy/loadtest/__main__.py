"""Load-test a service and write one page about it: `make loadtest`.

Measures what the service does for callers in a closed loop, then sends requests at constant mean
rates of which that is the measure, then a spike. Exit code 0 where all went well or was too much
for the service, 1 where an answer was none or an error was no overload, the service went
before the end, or nothing could be measured, 2 for wrong options.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.benchmarks.server_process import NotServing
from deploy.loadtest import load_plan
from deploy.loadtest.load_test import Loads, LoadTest, document
from deploy.loadtest.load_verdict import verdict
from deploy.loadtest.locust_options import KEY_VARIABLE, add_request_options, positive
from deploy.loadtest.locust_run import LocustFailed, run_locust
from deploy.loadtest.target import NoTarget, checked_url, serving_model

REPORT_JSON, REPORT_HTML = "report.json", "report.html"
INTERRUPTED = 130  # as shells have it


def main() -> int:
    """Measure, write, print."""
    options = _options()
    try:
        with _service(options) as (url, service):
            report = _measure(options, url, service)
    except (NoTarget, NotServing, LocustFailed) as error:
        print(f"loadtest: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("loadtest: stopped", file=sys.stderr)
        return INTERRUPTED
    page = _write(report, options.out)
    _print(report)
    print(f"\nreport: {page}")
    return int(report["fault_pairs"] > 0 or report["stopped"] is not None)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.loadtest",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--url", help="a service that runs already; without it one is started for the test")
    add("--bundle", type=Path, default=Path("bundles/default"), help="what the started one serves")
    add("--out", type=Path, default=Path("build/loadtest"), help="folder of the report")
    add_request_options(parser)
    add("--capacity-rps", type=positive, metavar="RATE",
        help="take this for the capacity; otherwise it is measured")  # fmt: skip
    add("--loads", type=_loads, default=load_plan.LOADS, metavar="X,X,…",
        help="arrival rates in multiples of the capacity")  # fmt: skip
    add("--capacity-s", type=_seconds, default=10, metavar="S", help="to measure the capacity")
    add("--step-s", type=_seconds, default=8, metavar="S", help="of each load")
    add("--timeline", choices=("spike", "ramp", "none"), default="spike",
        help="a run that is shown second by second")  # fmt: skip
    add("--timeline-s", type=_seconds, default=25, metavar="S", help="of that run")
    options = parser.parse_args()
    if options.url is not None:
        try:
            options.url = checked_url(options.url, host_is_mine=options.host_is_mine)
        except NoTarget as error:
            parser.error(f"argument --url: {error}")
    elif not (options.bundle / "manifest.json").is_file():
        parser.error(
            f"argument --bundle: no bundle in {options.bundle}: make export builds the default one"
        )
    return options


def _seconds(text: str) -> int:
    seconds = int(text)
    if not 1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{seconds} is not in 1-3600")
    return seconds


def _loads(text: str) -> tuple[float, ...]:
    return tuple(positive(part) for part in text.split(","))


@contextlib.contextmanager
def _service(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """URL and description of the service that is put under load."""
    if options.url is not None:
        yield options.url, options.url
        return
    # Here, since with --url no part of the service need be installed.
    from deploy.benchmarks import bench_setup

    # No pair is answered from memory, so that each load meets the same service.
    cache_bytes = os.environ.get("ADREL_CACHE_BYTES", "0")
    described = f"{options.bundle} on this machine, cache_bytes {cache_bytes}"
    _say(f"serving {described}")
    with bench_setup.service(options.bundle, ADREL_CACHE_BYTES=cache_bytes) as (host, port):
        yield f"http://{host}:{port}", described


def _measure(options: argparse.Namespace, url: str, service: str) -> dict[str, Any]:
    api_key = os.environ.get(KEY_VARIABLE)
    shared = ["--ads", str(options.ads), "--seed", str(options.seed)]
    shared += ["--timeout-ms", f"{options.timeout_ms:g}", "--network-ms", f"{options.network_ms:g}"]
    shared += ["--host-is-mine"] if options.host_is_mine else []
    loads = Loads(
        options.capacity_rps,
        options.loads,
        options.capacity_s,
        options.step_s,
        "steady" if options.timeline == "none" else options.timeline,
        options.timeline_s,
    )
    test = LoadTest(
        lambda run: run_locust(url, run, shared),
        lambda: serving_model(url, api_key),
        loads,
        options.ads,
        _say,
    )
    measured = test.measure()
    settings = {
        "ads_per_request": options.ads,
        "timeout_ms": options.timeout_ms,
        "patience_ms": options.timeout_ms + options.network_ms,
        "seed": options.seed,
        "seconds_counted_of_a_load": options.step_s,
    }
    return document(measured, test.models, service, settings)


def _say(text: str) -> None:
    print(text, flush=True)


def _write(report: dict[str, Any], out: Path) -> Path:
    # Slow to load, and of no use before the end.
    from deploy.loadtest.page import report_html

    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=True, allow_nan=False)
    (out / REPORT_JSON).write_text(text + "\n", encoding="ascii")
    page = out / REPORT_HTML
    page.write_text(report_html(report), encoding="utf-8")
    return page


def _print(report: dict[str, Any]) -> None:
    _, answer, grounds = verdict(report)
    print(f"\n{'load':>5} {'asked':>8} {'good':>8} {'good':>7} {'p50':>6} {'p95':>6} {'p99':>6}")
    print(f"{'':>5} {'pairs/s':>8} {'pairs/s':>8} {'%':>7} {'ms':>6} {'ms':>6} {'ms':>6}")
    for step in report["steps"]:
        latencies = (step[f"p{percent}_ms"] for percent in (50, 95, 99))
        shown = " ".join(f"{'-' if ms is None else f'{ms:.0f}':>6}" for ms in latencies)
        print(
            f"{step['load']:>5g} {step['asked_pairs_per_s']:>8.0f} "
            f"{step['good_pairs_per_s']:>8.0f} {100 * step['shares']['good']:>7.1f} {shown}"
        )
    print("\n" + "\n".join([answer, *grounds]))


if __name__ == "__main__":
    sys.exit(main())
