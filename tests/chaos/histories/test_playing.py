"""Histories, played and judged: a slice of the seeds, and that a broken promise is found."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import attrs
import pytest
import trio

from aegis.canvases import views
from aegis.canvases.revisions import Subscriber
from aegis.canvases.wakes import Wakes
from aegis.groups import rows as group_rows
from aegis.inboxes import inbox
from aegis.journal import shared_files
from aegis.journal.appender import Appender
from aegis.journal.file_content import Exchanged, FilePlace
from aegis.journal.note import Note
from aegis.journal.shared_directory import SharedDirectory
from aegis.queues import tasks
from aegis.queues.desk import QueueDesk
from aegis.terminals import record
from aegis.terminals.front import terminal
from aegis.workflows import calls
from aegis.workflows import desk as workflow_desk
from aegis.workflows import runs as workflow_runs
from aegis.workflows.carrier import Carrier
from aegis.workflows.runs import StoredRun
from tests.chaos.histories import script as s
from tests.chaos.histories.drawing import make_script
from tests.chaos.histories.playing import play
from tests.chaos.machine.simulated_flusher import SimulatedFlusher, skipping
from tests.chaos.machine.simulated_host import SimulatedHost

OPERATIONS = 50

DIGEST = """
from tests.chaos.histories.drawing import make_script
from tests.chaos.histories.playing import play
print(play(make_script(3)).events.digest)
"""


@pytest.mark.parametrize("seed", range(12))
def test_every_promise_holds(seed: int) -> None:
    outcome = play(make_script(seed))
    assert outcome.violations == ()
    assert outcome.operations >= OPERATIONS
    assert sum(outcome.hits.values()) > 0
    assert not outcome.evidence.lives[-1].killed
    assert {s.SHARED, s.DESK} <= set(outcome.evidence.ledgers)


def test_one_script_gives_one_trace() -> None:
    first, again = play(make_script(3)), play(make_script(3))
    assert first.events.count > 500
    assert first.trace == again.trace
    assert first == again


def test_another_script_gives_another_trace() -> None:
    assert play(make_script(3)).events != play(make_script(4)).events


@pytest.mark.long
@pytest.mark.one_python
def test_a_trace_hangs_on_nothing_of_its_process() -> None:
    digests = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("keep", [0, 1, 2, 5], ids=lambda keep: f"every {keep}th")
def test_any_part_of_a_script_is_one(keep: int) -> None:
    """Shrinking needs this."""
    script = make_script(5)
    steps = script.steps[1::keep] if keep else ()
    faults = script.faults[1::keep] if keep else script.faults
    outcome = play(attrs.evolve(script, steps=steps, faults=faults))
    assert outcome.violations == ()
    assert sum(outcome.hits.values()) > 0


@pytest.mark.one_python
def test_everything_that_can_be_asked_is_asked_and_everything_that_can_go_wrong_does() -> None:
    asked: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    seeds = chain(RICH_SEEDS, range(200))
    while set(asked) < ASKED or set(hits) < HITS:
        outcome = play(make_script(next(seeds)))
        asked.update(ask.what for ask in outcome.evidence.asks if ask.outcomes)
        hits.update(outcome.hits)
    assert set(asked) == ASKED
    assert set(hits) == HITS


RICH_SEEDS = (
    *(5646, 5052, 1218, 5656, 5040, 5020, 5028, 5621),
    *(0, 1, 2, 5, 22, 24, 32, 52),
)
"""Seeds whose scripts have all of it. When the making of scripts changes, more are played."""

ASKED = {
    "Broadcast",
    "CloseTerminal",
    "GetScreen",
    "Handoff",
    "ListTerminals",
    "ReadInbox",
    "ReadOutput",
    "ReadRecords",
    "ResizeTerminal",
    "RunCommand",
    "SendKeys",
    "SignalTerminal",
    "SpawnTerminal",
    *("AnswerRequest", "CloseAgent", "InterruptAgent", "ListRequests", "ListSessions"),
    *("ReadSession", "RestartAgent", "ShowAgent", "SpawnAgent"),
    *("ForkAgent", "PurgeAgent", "ResumeSession"),
    *("HandBackAgent", "PersonHandoff", "TakeOverAgent"),
    *("CancelTask", "Delegate", "Enqueue", "GetTask", "ListQueues", "ListTasks"),
    *("PauseQueue", "ResumeQueue", "RetryTask"),
    *("BroadcastToGroup", "DissolveGroup", "ListGroups", "ShowGroup", "SpawnMixedGroup"),
    *("WaitForAll", "WaitForAny"),
    *("AppendToSection", "GetCanvasHistory", "ListCanvases", "OpenCanvas", "ReadCanvas"),
    *("SubscribeCanvas", "UnsubscribeCanvas", "WriteSection"),
    *("CancelWorkflow", "GetWorkflow", "ListWorkflows", "ResumeWorkflow", "RetryWorkflow"),
    "RunWorkflow",
    "Subscribe",
    "Unsubscribe",
    "WaitInbox",
    "WaitTerminal",
}

HITS = {
    "disk: EIO",
    "disk: EIO, pages kept as clean",
    "disk: EIO, pages kept as dirty",
    "disk: ENOSPC",
    "disk: death",
    "disk: short write",
    "disk: stall",
    "fault point: EIO",
    "fault point: ENOSPC",
    "fault point: crash",
    "fault point: death",
    "fault point: stall",
    "agent killed",
    "agent not started",
    "conversation lost",
    "kill",
    "never reads",
    "power loss",
    "shell killed",
    "shell stopped",
    "workflow killed",
}


# Promises that are broken on purpose.


WITH_GROUPS = (14, 189, 310, 636)
"""Seeds of histories with groups."""


FIRST: dict[str, tuple[int, ...]] = {
    "told and gone": (17, 22),
    "overwritten unseen": (0,),
    "edit lost": (15,),
    "canvas wake needless": (15,),
    "canvas wake lost": (6,),
    "step done again": (6,),
    "workflow task twice": (1012,),
    "workflow question twice": (1012,),
    "workflow message twice": (1012,),
    "workflow task result": (1012,),
    "workflow reply": (1021,),
    "workflow answer": (1012,),
    "workflow session left": (1012,),
}
"""Seeds of histories in which a rule is soon broken."""


def is_found(rule: str, first: Iterable[int] = ()) -> bool:
    """Return whether this rule is broken in one of a few histories, the ``first`` before others."""
    seeds = dict.fromkeys((*first, *range(12), *WITH_GROUPS))
    outcomes = (play(make_script(seed)) for seed in seeds)
    return any(rule in {each.rule for each in outcome.violations} for outcome in outcomes)


def forgets_what_was_in_flight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Note, "load", lambda self: None)


def ends_no_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedHost, "open_target", lambda self, process: None)


def syncs_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedFlusher, "sync_slowly", skipping(SimulatedFlusher.sync_slowly))


def lists_twice(patch: pytest.MonkeyPatch) -> None:
    """List the newest message twice: a row has room for one message with its id."""
    listed = inbox._list
    patch.setattr(inbox, "_list", lambda messages: listed([*messages, *messages[-1:]]))


def credits_an_exit_to_the_next(patch: pytest.MonkeyPatch) -> None:
    made, exits = record.outcome_of, [0]

    def credited(command: Any, *, exit_code: int | None, **known: Any) -> Any:
        exits.append(exit_code or 0)
        return made(command, exit_code=exits[-2], **known)

    patch.setattr(terminal, "outcome_of", credited)


def drops_a_record(patch: pytest.MonkeyPatch) -> None:
    """Drop every tenth record without an error."""
    append, records = Appender.append, [0]

    def appended(self: Appender, line: bytes) -> Any:
        records[0] += b'"stdout"' in line
        is_dropped = records[0] % 10 == 0 and b'"stdout"' in line
        return append(self, (b" " * (len(line) - 1) + b"\n") if is_dropped else line)

    patch.setattr(Appender, "append", appended)


def notifies_nobody(patch: pytest.MonkeyPatch) -> None:
    settle = QueueDesk._settle

    async def silent(self: QueueDesk, task: Any, notify: bool) -> None:
        await settle(self, task, notify and task.phase != "completed")

    patch.setattr(QueueDesk, "_settle", silent)


def begins_lost_tasks_again(patch: pytest.MonkeyPatch) -> None:
    def lost(task: Any, worker: str, reason: str, text: str, now: float) -> Any:
        after = real(attrs.evolve(task, max_attempts=100), worker, reason, text, now)
        return attrs.evolve(after, max_attempts=task.max_attempts)

    real = tasks.lost
    patch.setattr(tasks, "lost", lost)


def credits_the_reply_before(patch: pytest.MonkeyPatch) -> None:
    made, texts = group_rows.ended, [None]

    def late(*what: Any) -> Any:
        end: Any = made(*what)
        texts.append(end.text)
        return attrs.evolve(end, text=texts[-2])

    patch.setattr(group_rows, "ended", late)


def replaces_what_was_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(views, "refusal", lambda *_: None)


def reads_no_displaced_file(patch: pytest.MonkeyPatch) -> None:
    def exchange(directory: SharedDirectory, place: FilePlace, *_: object) -> Exchanged:
        directory.rename(place.swap, place.name)
        directory.sync()
        return "exchanged"

    patch.setattr(shared_files, "_exchange", exchange)


def wakes_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscriber, "wants", lambda self, change: True)


def wakes_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Wakes, "_send", lambda self, subscriber, delivery: None)


def forgets_the_ends_of_steps(patch: pytest.MonkeyPatch) -> None:
    def forgetting(call: Any, **_: object) -> Any:
        return attrs.evolve(call, ended=call.ended + 1)

    patch.setattr(workflow_runs, "with_outcome", forgetting)


def makes_every_call_anew(patch: pytest.MonkeyPatch) -> None:
    numbers, call_id = itertools.count(), StoredRun.call_id

    def changing(self: StoredRun, position: str) -> str:
        return f"{call_id(self, position)}/{next(numbers)}"

    patch.setattr(StoredRun, "call_id", changing)


def returns_the_reply_before(patch: pytest.MonkeyPatch) -> None:
    made, replies = calls.value, [""]

    def late(result: Any) -> Any:
        replies.append(result if isinstance(result, str) else "")
        return made(replies[-2] if replies[-1].startswith("did ") else result)

    patch.setattr("aegis.workflows.carrier.value", late)


def takes_the_answer_before(patch: pytest.MonkeyPatch) -> None:
    text, answers = workflow_desk._text_of, ["nothing"]

    def late(message: Any) -> Any:
        answers.append(str(text(message)))
        return answers[-2]

    patch.setattr(workflow_desk, "_text_of", late)


def closes_no_session(patch: pytest.MonkeyPatch) -> None:
    async def leave(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    patch.setattr(Carrier, "_release", leave)


@pytest.mark.one_python
@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (forgets_what_was_in_flight, "unrecorded"),
        (ends_no_process, "process left"),
        (syncs_nothing, "told and gone"),
        (lists_twice, "kept twice"),
        (credits_an_exit_to_the_next, "outcome"),
        (drops_a_record, "numbers"),
        (notifies_nobody, "end unreported"),
        (begins_lost_tasks_again, "task begun too often"),
        (credits_the_reply_before, "reply miscredited"),
        (replaces_what_was_not_read, "overwritten unseen"),
        (reads_no_displaced_file, "edit lost"),
        (wakes_everybody, "canvas wake needless"),
        (wakes_nobody, "canvas wake lost"),
        (forgets_the_ends_of_steps, "step done again"),
        (makes_every_call_anew, "workflow task twice"),
        (makes_every_call_anew, "workflow question twice"),
        (makes_every_call_anew, "workflow message twice"),
        (returns_the_reply_before, "workflow task result"),
        (returns_the_reply_before, "workflow reply"),
        (takes_the_answer_before, "workflow answer"),
        (closes_no_session, "workflow session left"),
    ],
)
def test_a_broken_promise_is_found(
    broken: Callable[[pytest.MonkeyPatch], None], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert is_found(rule, FIRST.get(rule, ()))
