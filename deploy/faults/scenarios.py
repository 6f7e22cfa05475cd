"""The faults, one function each: what is done to a service under load, and what it must do."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.faults.faulty_service import LOOP_HANG_S
from deploy.faults.outcomes import Outcome
from deploy.faults.subject import Subject
from deploy.faults.verdict import Story, Window

SOON_S = 20.0
"""For what a service does by itself and at once, on a machine that may be busy."""

STOP_S = 1.5  # of `shutdown_delay_s`
DRAIN_S = 5.0
PAUSE_S = 1.0
RUN_S = 0.1  # of each batch of one worker, where the machine must be too small


@dataclass(frozen=True, slots=True)
class Stage:
    """What a scenario works with; the load runs while it does.

    Attributes:
        subject: The service.
        other: A bundle of another version, with other scores.
        versions: Of the bundle that it serves first, and of that one.
        fault_s: How long a fault lasts that has no end of its own.
    """

    subject: Subject
    other: Path
    versions: tuple[str, str]
    fault_s: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault.

    Attributes:
        name: On the command line.
        what: In a sentence.
        act: Does it, and tells.
        options: Of the service, beside those that all have.
        load: Times the usual rate.
        ends: The service is not there when it is over.
        from_start: A fault that the service starts with.
    """

    name: str
    what: str
    act: Callable[[Stage], Awaitable[Story]]
    options: Sequence[str] = ()
    load: float = 1.0
    ends: bool = False
    from_start: str = ""


async def nothing(stage: Stage) -> Story:
    """Load alone."""
    await asyncio.sleep(stage.fault_s)
    return Story(versions=frozenset(stage.versions[:1]))


async def overload(stage: Stage) -> Story:
    """A machine of a few batches a second gets more than that: who is taken in is served.

    It is slow from its start, so that the service knows what batches cost it.
    """
    await asyncio.sleep(stage.fault_s)
    story = Story()
    shed = [
        stage.subject.metric(f'adrel_shed_total{{reason="{reason}"}}')
        for reason in ("queue_full", "deadline_unreachable")
    ]
    story.expect(sum(shed) > 0, "nothing was refused: this was no overload")
    stage.subject.mend()
    story.mended_s = time.monotonic()
    return story


async def runs_fail(stage: Stage) -> Story:
    """Every run raises for a while."""
    story = await _broken(stage, "fail", Outcome.FAILED)
    live = await asyncio.to_thread(stage.subject.status, "/livez")
    story.expect(live == 200, "a run that raises made it not live")
    return story


async def one_run_hangs(stage: Stage) -> Story:
    """One thread of two hangs: its callers hear of it, the other thread goes on."""
    subject, story, began_s = stage.subject, Story(), time.monotonic()
    subject.break_it("hang-first")
    noticed = await subject.eventually(lambda: subject.status("/livez") == 503, SOON_S)
    story.expect(noticed, "/livez never said 503")
    story.expect(subject.status("/readyz") == 200, "not ready, with a thread left")
    story.expect(subject.metric("adrel_stuck_workers") == 1, "adrel_stuck_workers is not 1")
    await asyncio.sleep(stage.fault_s)
    subject.mend()
    story.mended_s = time.monotonic()
    back = await subject.eventually(lambda: subject.status("/livez") == 200, SOON_S)
    story.expect(back, "/livez did not recover when the run came back")
    story.windows = [Window(began_s, time.monotonic(), frozenset({Outcome.FAILED}))]
    return story


async def all_runs_hang(stage: Stage) -> Story:
    """No thread is left: callers are sent away, a stop is not held up."""
    subject, story, began_s = stage.subject, Story(), time.monotonic()
    subject.break_it("hang")
    unready = await subject.eventually(lambda: subject.status("/readyz") == 503, SOON_S)
    story.expect(unready, "/readyz never said 503")
    asked_s = time.monotonic()
    subject.signal(signal.SIGTERM)
    story.exit_code = await subject.exit_code(SOON_S)
    story.expect(story.exit_code == 0, f"exit code {story.exit_code}")
    took_s = time.monotonic() - asked_s
    story.expect(took_s < STOP_S + DRAIN_S, f"the stop took {took_s:.1f} s")
    subject.mend()
    await _again(stage, story)
    gone = frozenset({Outcome.FAILED, Outcome.NOT_READY, Outcome.REFUSED, Outcome.RESET})
    story.windows = [Window(began_s, time.monotonic(), gone)]
    return story


async def out_of_memory(stage: Stage) -> Story:
    """Batches of more than some tokens do not fit: all is scored, in halves."""
    subject, story = stage.subject, Story()
    subject.break_it("memory 24")
    await asyncio.sleep(stage.fault_s)
    story.expect(subject.metric("adrel_batch_splits_total") > 0, "no batch was split")
    said = len(subject.logged("out of memory"))
    story.expect(said == 1, f"the log says it {said} times")
    subject.mend()
    # A pair that is longer than that by itself has no smaller half.
    story.windows = [Window(0.0, time.monotonic(), frozenset({Outcome.FAILED}))]
    story.mended_s = time.monotonic()
    return story


async def reloads(stage: Stage) -> Story:
    """A good bundle, a bad one and none at all, one after the other."""
    subject, story = stage.subject, Story(versions=frozenset(stage.versions))
    await asyncio.sleep(stage.fault_s / 2)
    bad = subject.folder / "bad"
    bad.mkdir()
    (bad / "manifest.json").write_text("{", encoding="ascii")
    steps = [(stage.other, "changed"), (bad, "failed"), (subject.folder / "none", "failed")]
    for number, (bundle, result) in enumerate(steps):
        sample = f'adrel_reloads_total{{result="{result}"}}'
        before = subject.metric(sample)
        subject.serve(bundle)
        subject.signal(signal.SIGHUP)
        done = await subject.eventually(lambda: subject.metric(sample) == before + 1, SOON_S)  # noqa: B023  # called in this turn
        story.expect(done, f"reload {number + 1} did not end as {result}")
    await asyncio.sleep(stage.fault_s / 2)
    return story


async def pause(stage: Stage) -> Story:
    """The process stands still for a while, as on a paused machine."""
    subject, began_s = stage.subject, time.monotonic()
    subject.signal(signal.SIGSTOP)
    await asyncio.sleep(PAUSE_S)
    subject.signal(signal.SIGCONT)
    story = Story(mended_s=time.monotonic())
    answers = await subject.eventually(lambda: subject.status("/livez") > 0, SOON_S)
    story.expect(answers and subject.status("/livez") == 200, "not live after a pause")
    story.windows = [Window(began_s, time.monotonic(), late=True)]
    return story


async def loop_hangs(stage: Stage) -> Story:
    """The event loop stands still: nothing answers, and the log has the stacks."""
    subject, began_s = stage.subject, time.monotonic()
    subject.signal(signal.SIGUSR1)
    await asyncio.sleep(LOOP_HANG_S)
    story = Story(mended_s=time.monotonic())
    turns = await subject.eventually(
        lambda: len(subject.logged("the event loop turns again")) == 1, SOON_S
    )
    story.expect(turns, "the log does not say that the loop turns again")
    told = subject.logged("the event loop stands still")
    stacks = told[0]["stacks"] if told else {}
    seen = any("faulty_service" in frame for frames in stacks.values() for frame in frames)
    story.expect(seen, "no stack in the log shows what the loop hung in")
    story.windows = [Window(began_s, time.monotonic(), late=True)]
    return story


async def clock_jumps(stage: Stage) -> Story:
    """The wall clock jumps by days, back and forth."""
    return await _broken(stage, "clock 1000000")


async def stop(stage: Stage) -> Story:
    """SIGTERM in the midst of it: whoever was let in is answered."""
    subject, story = stage.subject, Story()
    await asyncio.sleep(stage.fault_s / 2)
    asked_s = time.monotonic()
    subject.signal(signal.SIGTERM)
    unready = await subject.eventually(lambda: subject.status("/readyz") == 503, STOP_S)
    story.expect(unready, "/readyz never said 503 before the drain")
    served_until_s = asked_s + STOP_S
    story.exit_code = await subject.exit_code(SOON_S)
    story.expect(story.exit_code == 0, f"exit code {story.exit_code}")
    # What comes later than the delay is refused, or meets a connection that is closing.
    late = frozenset({Outcome.NOT_READY, Outcome.REFUSED, Outcome.RESET})
    story.windows = [Window(served_until_s, float("inf"), late)]
    return story


async def kill(stage: Stage) -> Story:
    """SIGKILL, and another process in its place."""
    subject, story, began_s = stage.subject, Story(), time.monotonic()
    subject.signal(signal.SIGKILL)
    story.exit_code = await subject.exit_code(SOON_S)
    await _again(stage, story)
    gone = frozenset({Outcome.NOT_READY, Outcome.REFUSED, Outcome.RESET})
    story.windows = [Window(began_s, time.monotonic(), gone)]
    return story


async def _broken(stage: Stage, fault: str, *allowed: Outcome) -> Story:
    """Break it for a while."""
    began_s = time.monotonic()
    stage.subject.break_it(fault)
    await asyncio.sleep(stage.fault_s)
    stage.subject.mend()
    mended_s = time.monotonic()
    return Story([Window(began_s, mended_s, frozenset(allowed))], mended_s)


async def _again(stage: Stage, story: Story) -> None:
    """Start another one, as an orchestrator would."""
    await stage.subject.start()
    story.mended_s = time.monotonic()


IMPATIENT = ("--watchdog-s", "0.5")
SMALL = ("--inference-threads", "1", "--max-queue-ms", "200")
# Where other programs fill the cores, a reload that gives way has no end.
INSISTENT = ("--inference-gives-way", "false")
STOPPING = ("--shutdown-delay-s", str(STOP_S), "--drain-timeout-s", str(DRAIN_S))

SCENARIOS = (
    Scenario("nothing", "load alone", nothing),
    Scenario(
        "overload",
        "more than the machine can do",
        overload,
        SMALL,
        load=3.0,
        from_start=f"slow {RUN_S}",
    ),
    Scenario("fail", "every run raises", runs_fail),
    Scenario("hang", "one of two runs does not return", one_run_hangs, IMPATIENT),
    Scenario(
        "hang-all",
        "no run returns; stop, start",
        all_runs_hang,
        ("--inference-threads", "1", *IMPATIENT),
    ),
    Scenario("memory", "full batches do not fit", out_of_memory),
    Scenario("reload", "a good bundle, a bad one, none", reloads, INSISTENT),
    Scenario("pause", "SIGSTOP, SIGCONT", pause),
    Scenario("loop", "the event loop hangs", loop_hangs, IMPATIENT),
    Scenario("clock", "the wall clock jumps", clock_jumps),
    Scenario("stop", "SIGTERM under load", stop, STOPPING, ends=True),
    Scenario("kill", "SIGKILL, start", kill),
)
