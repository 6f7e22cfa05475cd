"""What a load test found out, in a few sentences made of its figures alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from model_export.report.number_text import number

Part = Mapping[str, Any]

KEPT_SHARE = 0.99  # of the pairs asked for: from there on a load counts as kept
SHOWN_SHARE = 0.001  # smaller parts are left out of a sentence
SENT_LATE_MS = 5.0  # past it the load generator itself is part of the latencies

FATE_WORDS = {
    "refused": "refused at once",
    "deadline": "given up on at the deadline",
    "late": "scored too late",
    "failed": "lost to faults",
}


def verdict(document: Part) -> tuple[bool, str, list[str]]:
    """The answer and its grounds.

    Args:
        document: `report.json`.

    Returns:
        Whether a load was kept and nothing was wrong, the answer in a sentence, and the next ones.
    """
    steps = document["steps"]
    kept = last_kept(steps)
    sentences = list(_grounds(document, kept))
    stopped = document["stopped"]
    if stopped is not None:
        sentences.insert(0, f"Stopped early: {stopped}. What follows ends there.")
    if document["fault_pairs"]:
        answer = (
            f"Faults: {document['fault_pairs']:,} pairs met an answer that is none, or an error "
            "that is no overload. The figures below are of a service that does not work."
        )
        return False, answer, sentences
    if stopped is not None and not steps:
        return False, "No load was measured.", sentences
    return (
        kept is not None and stopped is None,
        _answer(steps, kept, document["settings"]["patience_ms"]),
        sentences,
    )


def last_kept(steps: Sequence[Part]) -> Part | None:
    """The highest load up to which every one was kept."""
    found = None
    for step in steps:
        if step["shares"]["good"] < KEPT_SHARE:
            break
        found = step
    return found


def share_text(share: float) -> str:
    """A share as people read it, never rounded up: 100 % is all of them."""
    if 0 < share < SHOWN_SHARE:
        return f"under {100 * SHOWN_SHARE:g} %"
    return f"{math.floor(share * 1000 + 1e-9) / 10:g} %"


def seconds_to_recover(timeline: Part) -> int | None:
    """Seconds after the end of a spike until a load was kept again; None where it never was.

    The spike is where more was asked than halfway between usual and peak.
    """
    rows = timeline["rows"]
    halfway = (timeline["base_pairs_per_s"] + timeline["peak_pairs_per_s"]) / 2
    in_spike = [row["at_s"] for row in rows if row["asked_pairs_per_s"] > halfway]
    end_s = in_spike[-1] + 1 if in_spike else 0
    after = [row for row in rows if row["at_s"] >= end_s]
    again = [row["at_s"] - end_s for row in after if row["shares"]["good"] >= KEPT_SHARE]
    return again[0] if again else None


def _answer(steps: Sequence[Part], kept: Part | None, patience_ms: float) -> str:
    if kept is None:
        lowest = steps[0]
        return (
            f"Does not keep {number(lowest['asked_pairs_per_s'])} pairs/s, the least that was "
            f"asked for: {share_text(lowest['shares']['good'])} of the pairs have a score within "
            f"{number(patience_ms)} ms."
        )
    return (
        f"Keeps {number(kept['asked_pairs_per_s'])} pairs/s: {share_text(kept['shares']['good'])} "
        f"of the pairs have a score within {number(patience_ms)} ms, and 99 % of the answers come "
        f"within {number(kept['p99_ms'])} ms."
    )


def _grounds(document: Part, kept: Part | None) -> Iterator[str]:
    steps, capacity = document["steps"], document["capacity"]
    if kept is not None:
        yield (
            f"That is {kept['load']:g} of the capacity, {number(capacity['pairs_per_s'])} "
            f"pairs/s ({capacity['source']})."
        )
        if kept["cached_share"]:
            yield f"{share_text(kept['cached_share'])} of its scores came out of the cache."
    if steps and not (document["stopped"] and kept is steps[-1]):
        yield from _beyond(steps, kept)
    if document["timeline"]:
        yield from _timeline(document["timeline"])
    waits_ms = [step["sent_late_p99_ms"] or 0.0 for step in steps]
    if max(waits_ms, default=0.0) > SENT_LATE_MS:
        yield (
            f"The load generator was itself up to {number(max(waits_ms))} ms late (99th "
            "percentile): give it cores of its own, since latencies count from when a request "
            "was due."
        )
    if len(document["model_versions"]) > 1:
        yield "Another model took over during the test."


def _beyond(steps: Sequence[Part], kept: Part | None) -> Iterator[str]:
    past = [step for step in steps if kept is None or step["load"] > kept["load"]]
    if not past:
        yield "Every load was kept: the limit is higher."
        return
    first, most = past[0], past[-1]
    if kept is not None and first is not most:
        yield f"At {first['load']:g} of the capacity {_fates(first)}."
    best = max(step["good_pairs_per_s"] for step in steps)
    ratio = most["good_pairs_per_s"] / best if best else 0.0
    compared = f", {share_text(ratio)} of its best" if ratio < 1 else ""
    yield (
        f"Asked for {most['load']:g} times the capacity "
        f"({number(most['asked_pairs_per_s'])} pairs/s), it still gives "
        f"{number(most['good_pairs_per_s'])} good pairs/s{compared}: {_fates(most)}."
    )


def _fates(step: Part) -> str:
    shares = {fate: step["shares"][fate] for fate in FATE_WORDS}
    largest = sorted(shares.items(), key=lambda one: -one[1])
    words = [
        f"{share_text(share)} {FATE_WORDS[fate]}" for fate, share in largest if share > SHOWN_SHARE
    ]
    return ", ".join([f"{share_text(step['shares']['good'])} of the pairs are good", *words])


def _timeline(timeline: Part) -> Iterator[str]:
    if timeline["shape"] != "spike":
        return
    took_s = seconds_to_recover(timeline)
    spike = f"After a spike to {number(timeline['peak_pairs_per_s'])} pairs/s"
    kept = f"{share_text(KEPT_SHARE)} of the pairs"
    if took_s is None:
        yield f"{spike}, it was not back at {kept} being good before the end."
    else:
        when = f"{took_s} s later" if took_s else "in the very next second"
        yield f"{spike}, {kept} are good again {when}."
