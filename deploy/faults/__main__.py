"""Break a running service in every way that it must survive, and account for every request.

    python -m deploy.faults --bundle bundles/default

Each scenario starts the service, sends it requests at their instants whether answers come or not,
does something to it, and then says what became of each request. Exit code 1 where one has no end,
an answer was wrong or mixed, an error came that the fault does not excuse, something was later than
the machine excuses, or the service did not recover or stop as it should. Exit code 3 where none of
this was seen, but without a fault (`nothing`) not even half of the requests got scores.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.faults.load import Load
from deploy.faults.outcomes import Outcome, Scores
from deploy.faults.scenarios import SCENARIOS, SOON_S, Scenario, Stage, nothing
from deploy.faults.subject import Subject
from deploy.faults.verdict import Verdict, too_little_answered, verdict
from deploy.faults.witness import Witness
from service.domain import Ad
from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import MANIFEST_FILE, read_manifest

QUERIES = ("red running shoes", "cheap leather bag", "printer ink")
TEXTS = tuple(
    f"{colour} {thing} {extra}".strip()
    for colour, thing, extra in itertools.product(
        ("red", "blue", "cheap"),
        ("shoes", "bag", "ink cartridge"),
        ("", "on sale this week", "free shipping and returns on all orders over twenty"),
    )
)
PAIRS = [(query, TEXTS) for query in QUERIES]

NOT_JUDGED_EXIT_CODE = 3

BEFORE_S = 0.5  # of load before anything is done
AFTER_S = 1.5  # and after it is over


def main(argv: Sequence[str] | None = None) -> int:
    """Play the scenarios and print the account.

    Returns:
        0 where the service survived all of them, 1 where it did not, 3 where too little was
        answered to tell. (2 for options that do not exist.)
    """
    options = _options(argv)
    wanted = [one for one in SCENARIOS if not options.only or one.name in options.only]
    survived = judged = True
    with tempfile.TemporaryDirectory() as folder:
        other = with_other_scores(options.bundle, Path(folder) / "other")
        models = dict(right_scores(bundle) for bundle in (options.bundle, other))
        _print_head()
        for scenario in wanted:
            account, sent = asyncio.run(play(scenario, options, other, models))
            _print(scenario, account, sent)
            survived &= not account.complaints
            if scenario.act is nothing and too_little_answered(account):
                judged = False
                print(f"  {scenario.name}: too little was answered to judge", flush=True)
    if not survived:
        return 1
    return 0 if judged else NOT_JUDGED_EXIT_CODE


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bundle", type=Path, default=Path("bundles/default"))
    names = [one.name for one in SCENARIOS]
    told = ", ".join(f"{one.name} ({one.what})" for one in SCENARIOS)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=told)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second")
    parser.add_argument("--fault-s", type=float, default=3.0, help="how long a fault lasts")
    parser.add_argument("--timeout-ms", type=float, default=500.0, help="of each request")
    parser.add_argument("--late-ms", type=float, default=250.0,
                        help="an answer may be so late, plus twice what the machine keeps a thread "
                        "waiting; the load's own delay is in it")  # fmt: skip
    parser.add_argument("--recover-s", type=float, default=3.0,
                        help="from the fault's end to the first good answer")  # fmt: skip
    parser.add_argument("--port", type=int, default=0, help="of the service; 0 takes a free one")
    return parser.parse_args(argv)


async def play(
    scenario: Scenario, options: argparse.Namespace, other: Path, models: dict[str, Scores]
) -> tuple[Verdict, int]:
    """One scenario, from the start of the service to its end.

    Returns:
        The account, and how many requests there were.
    """
    with Witness() as witness:
        return await _played(scenario, options, other, models, witness)


async def _played(
    scenario: Scenario,
    options: argparse.Namespace,
    other: Path,
    models: dict[str, Scores],
    witness: Witness,
) -> tuple[Verdict, int]:
    always = ["--cache-bytes", "0", "--inference-threads", "2"]  # a later one of a name wins
    subject = Subject(options.bundle, [*always, *scenario.options], options.port)
    try:
        if scenario.from_start:
            subject.break_it(scenario.from_start)
        await subject.start()
        load = Load(subject.address, PAIRS, models, options.timeout_ms)
        rate_per_s = options.rate * scenario.load
        stopped = asyncio.Event()
        sending = asyncio.create_task(load.run(rate_per_s, stopped))
        await asyncio.sleep(BEFORE_S)
        first, second = models
        stage = Stage(subject, other, (first, second), options.fault_s)
        story = await scenario.act(stage)
        await asyncio.sleep(0.0 if scenario.ends else AFTER_S)
        mended_s = story.mended_s
        if mended_s is not None:  # a busy machine may take its time
            await subject.eventually(lambda: _has_good_answer(load, mended_s), SOON_S)
        stopped.set()
        await sending
        story.expect(load.surplus == 0, f"{load.surplus} connections had more than their answers")
        if not scenario.ends:
            live = await asyncio.to_thread(subject.status, "/readyz")
            story.expect(live == 200, "not ready at the end")
    finally:
        subject.close()
    account = verdict(
        load.sent,
        load.ended,
        story,
        waits=witness.waits(),
        timeout_ms=options.timeout_ms,
        late_ms=options.late_ms,
        recover_s=options.recover_s,
    )
    return account, load.sent


def _has_good_answer(load: Load, since_s: float) -> bool:
    """Of a request that was sent since then."""
    return any(one.outcome is Outcome.OK and one.sent_s >= since_s for one in load.ended)


def right_scores(bundle: Path) -> tuple[str, Scores]:
    """The version of a bundle, and the score of each pair, computed alone."""
    opened = open_bundle(bundle)
    scores = {
        (query, text): float(opened.to_scores(opened.model.logits(opened.encode(query, [ad])))[0])
        for query, text in itertools.product(QUERIES, TEXTS)
        for ad in [Ad("a", text=text)]
    }
    return opened.manifest.model.version, scores


def with_other_scores(bundle: Path, out: Path) -> Path:
    """A copy at `out` that is another model to the service: its score calibration differs."""
    shutil.copytree(bundle, out)
    file = out / MANIFEST_FILE
    fields = json.loads(file.read_text(encoding="utf-8"))
    other = {"method": "platt", "slope": 0.5, "intercept": 0.125, "fitted_on": "nothing"}
    fields["score_calibration"] = other
    file.write_text(json.dumps(fields), encoding="utf-8")
    fields["model"]["version"] = read_manifest(out).content_version()
    file.write_text(json.dumps(fields), encoding="utf-8")
    return out


def _print_head() -> None:
    names = " | ".join(outcome.value for outcome in Outcome)
    print(f"| scenario | sent | {names} | latest ms | machine ms | recovered s |")
    print("|---" * (len(Outcome) + 5) + "|")


def _print(scenario: Scenario, account: Verdict, sent: int) -> None:
    counts = " | ".join(str(account.counts[outcome] or "") for outcome in Outcome)
    recovered = "" if account.recovered_s is None else f"{account.recovered_s:.2f}"
    print(
        f"| {scenario.name} | {sent} | {counts} | {account.latest_ms:.0f} "
        f"| {account.machine_ms:.0f} | {recovered} |",
        flush=True,
    )
    for complaint in account.complaints:
        print(f"  {scenario.name}: {complaint}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
