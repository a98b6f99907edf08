"""Queues of a real daemon, whose workers are stand-ins."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import trio
import yaml

from aegis.client.errors import CommandFailed, ConnectionLost, NoDaemon
from aegis.queues.desk import MAX_LIVE
from tests.e2e.callers import Caller, line_caller
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
from tests.e2e.watchers import watching
from tests.resources.waiting import until

pytestmark = pytest.mark.real

Json = dict[str, Any]

COMPACTION = ("ledger.compact.before", "ledger.replace.before", "ledger.replace.after")
"""Fault points at which a ledger is replaced by one with its rows alone."""

QUEUES = {
    "build": {"agent": "asks"},
    "wide": {"agent": "asks", "max_parallel": 3},
    "twice": {"agent": "asks", "max_attempts": 2},
    "full": {"agent": "all"},
    "broken": {"agent": "broken"},
}


class Queued(Team):
    """A daemon with queues."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        command = [sys.executable, str(STAND_IN), "claude"]
        agents: dict[str, Json] = {
            name: {"provider": "claude", "permission": permission, "command": [*command]}
            for name, permission in (("asks", "ask"), ("all", "full"))
        }
        agents["broken"] = {"provider": "claude", "command": ["/bin/false"]}
        configuration = {"agents": agents, "queues": QUEUES}
        (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
        self.start()

    def start(self, faults: str = "") -> None:
        self.daemon.start("--port", "0", "--trust", faults=faults)

    def add(self, payload: str = "SAY done", queue: str = "build", **arguments: object) -> str:
        reply = self.call("enqueue", queue=queue, payload=payload, **arguments)
        task_id: str = reply["task_id"]
        return task_id

    def task(self, task: str) -> Json:
        return self.call("task_status", task_id=task)

    def ends(self, task: str, status: str = "completed") -> Json:
        until(lambda: bool(self.task(task)["ended"]), f"task {task} ends")
        ended = self.task(task)
        assert ended["status"] == status, ended
        return ended

    def retry(self, task: str) -> Json:
        """Enqueue a task again, once its session is ended."""
        found: list[Json] = []

        def is_retried() -> bool:
            try:
                found.append(self.call("task_retry", task_id=task))
            except CommandFailed as error:
                if "is still being ended" not in str(error):
                    raise
            return bool(found)

        until(is_retried, f"task {task} is enqueued again")
        return found[0]

    def runs(self, task: str) -> str:
        """Wait until the worker of a task works; return its handle."""
        until(lambda: self.task(task)["attempt"] > 0, f"task {task} runs")
        worker: str = self.task(task)["worker"]
        return worker

    def gets(self, handle: str, number: int) -> list[Json]:
        until(lambda: len(self.inbox(handle)) >= number, f"{handle} gets {number} messages")
        return self.inbox(handle)


@pytest.fixture
def queued(own_daemon: DaemonProcess) -> Iterator[Queued]:
    yield Queued(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


URI = "aegis://queues/build"


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
@pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning")
async def test_a_queue_is_a_resource_that_notifies_of_its_tasks(queued: Queued, era: str) -> None:
    def add() -> str:
        return queued.add("SAY done")

    async with watching(queued.daemon, era, [URI]) as watcher:
        assert await watcher.read(URI) == {"result": []}
        task = await trio.to_thread.run_sync(add)
        assert await watcher.next() == URI
        await trio.to_thread.run_sync(queued.ends, task)
        [found] = (await watcher.read(URI))["result"]
        assert (found["task_id"], found["result"]) == (task, "done")
        uris = [each.uri for each in (await watcher.client.list_resources()).resources]
        assert URI in uris


def test_a_task_is_done_by_a_fresh_session_and_its_sender_is_notified(queued: Queued) -> None:
    task = queued.add("SAY the answer", from_handle="pm")
    ended = queued.ends(task)
    assert (ended["result"], ended["attempt"], ended["worker"]) == ("the answer", 1, "build-1")
    [message] = queued.gets("pm", 1)
    assert message["text"].startswith(f"> from queue:build · task#{task} · ok · ")
    assert (message["body"], message["id"]) == ("the answer", f"task:{task}/end")
    until(lambda: queued.info("build-1")["state"] == "closed", "its worker is closed")
    assert queued.info("build-1")["spawned_by"] == "queue:build"
    assert agents_of(queued.daemon) == []
    [opened] = queued.entries("build-1", "turn_opened")
    assert opened["text"].startswith(f"> from queue:build · task#{task} · ")


def test_tasks_run_one_after_another_and_as_many_at_once_as_allowed(queued: Queued) -> None:
    first, second = queued.add("HANG"), queued.add()
    wide = [queued.add("HANG", "wide") for _ in range(4)]
    for each in (first, *wide[:3]):
        queued.runs(each)
    assert queued.task(second)["status"] == "pending"
    assert queued.task(wide[3])["queued_position"] == 0
    queued.call("cancel", task_id=first)
    queued.ends(second)


def test_a_failed_turn_fails_its_task_and_those_that_wait_for_it(queued: Queued) -> None:
    task = queued.add("HANG", from_handle="pm")
    after = queued.add(after=[task], from_handle="pm")
    queued.call("interrupt", handle=queued.runs(task))
    failed = queued.ends(task, "failed")
    assert failed["error"].startswith("its turn was cancelled")
    assert "which it waits for, has failed" in queued.ends(after, "failed")["error"]
    messages = queued.gets("pm", 2)
    assert [each["status"] for each in messages] == ["error", "error"]
    with pytest.raises(CommandFailed, match=f"waits for task {task}, which has failed: retry"):
        queued.retry(after)


def test_a_retried_task_still_waits_for_the_tasks_and_the_time_of_its_first_attempt(
    queued: Queued,
) -> None:
    first = queued.add("DIE 1")
    second = queued.add("SAY second", after=[first])
    third = queued.add("SAY third", after=[second])
    queued.ends(third, "failed")
    with pytest.raises(CommandFailed, match=f"waits for task {second}, which has failed"):
        queued.retry(third)
    # The daemon restarts: a retry is refused by what is stored.
    queued.daemon.kill()
    queued.start()
    with pytest.raises(CommandFailed, match=f"waits for task {first}, which has failed"):
        queued.retry(second)
    queued.call("queue_pause", queue="build")
    assert queued.retry(first)["failed_with"] == [second, third]
    shown = queued.retry(second)
    assert (shown["status"], shown["waits"]) == ("waiting", f"for {first}")
    assert queued.task(first)["failed_with"] == [], "it waits again"
    queued.daemon.kill()
    queued.start()
    assert queued.task(second)["waiting_for"] == [first]
    queued.call("queue_resume", queue="build")
    assert "which it waits for, has failed" in queued.ends(second, "failed")["error"]

    later = queued.add(not_before="2099-01-01T00:00:00Z")
    queued.call("cancel", task_id=later)
    shown = queued.retry(later)
    assert shown["status"] == "waiting"
    assert shown["waits"].startswith("until ")
    assert datetime.fromisoformat(shown["not_before"]) == datetime(2099, 1, 1, tzinfo=UTC)


ZONE = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2098-07-01T06:00", "2098-07-01T06:00:00+02:00"),
        ("2098-12-01 06:00:30", "2098-12-01T06:00:30+01:00"),
        ("2098-12-01T06:00Z", "2098-12-01T07:00:00+01:00"),
        ("2098-12-01T06:00:00.5-0500", "2098-12-01T12:00:00+01:00"),
        ("2026-10-25T02:30+01:00", "2026-10-25T02:30:00+01:00"),
    ],
)
def test_a_time_without_a_zone_is_local_and_is_shown_with_its_zone(
    queued: Queued, text: str, shown: str
) -> None:
    queued.daemon.stop()
    queued.daemon.variables["TZ"] = ZONE
    queued.start()
    queued.call("queue_pause", queue="build")
    reply = queued.call("enqueue", queue="build", payload="SAY x", not_before=text)
    assert reply["not_before"] == shown
    if not shown.startswith("2026"):
        assert queued.task(reply["task_id"])["waits"] == f"until {shown}"
    added = queued.daemon.cli("queue", "add", "build", "SAY x", "--not-before", text)
    assert f"does not begin before {shown}" in added.stderr
    task = queued.task(added.stdout.strip())
    assert task["not_before"] == shown
    assert shown in queued.daemon.cli("queue", "task", task["task_id"]).stdout


def test_a_time_of_the_command_line_is_local_to_the_person(queued: Queued) -> None:
    queued.daemon.variables["TZ"] = "Asia/Tokyo"  # of the command line: the daemon runs already
    added = queued.daemon.cli("queue", "add", "build", "x", "--not-before", "2098-07-01T06:00")
    moment = datetime.fromisoformat(queued.task(added.stdout.strip())["not_before"])
    assert moment == datetime(2098, 6, 30, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *(
            (text, "is no date with a time of day: write it as")
            for text in ("2098-07-01", "2098-W27-2T06:00", "2098W272", "20980701T0600", "6:00")
        ),
        *((text, "is no date with a time of day") for text in ("2098-13-01T06:00", "tomorrow", "")),
        ("2026-03-29T02:30", "is not there, as the clocks of this machine are set forward then"),
        ("2026-10-25T02:30", r"is there twice, .*: write the zone as well, \+02:00 or \+01:00"),
    ],
)
def test_a_time_that_is_no_moment_is_refused(queued: Queued, text: str, problem: str) -> None:
    queued.daemon.stop()
    queued.daemon.variables["TZ"] = ZONE
    queued.start()
    with pytest.raises(CommandFailed, match=f"not_before: .*{problem}"):
        queued.add(not_before=text)
    refused = queued.daemon.cli("queue", "add", "build", "x", "--not-before", text)
    assert refused.returncode == 2
    assert re.search(problem, refused.stderr)
    assert queued.call("task_list")["result"] == []


def test_the_command_line_shows_what_a_task_waits_for(queued: Queued) -> None:
    first = queued.add("HANG")
    second = queued.add(after=[first], not_before="2098-07-01T06:00Z")
    table = queued.daemon.cli("queue", "show", "build").stdout
    assert f"waiting for {first} and until 2098-07-01T" in table
    queued.call("cancel", task_id=first)
    queued.ends(second, "failed")

    def retried() -> str:
        done = queued.daemon.cli("queue", "retry", first)
        return done.stderr if done.returncode == 0 else ""

    until(lambda: f"failed with it, and not retried: {second}" in retried(), "it says so")


def test_a_worker_that_dies_is_replaced_if_another_attempt_is_allowed(queued: Queued) -> None:
    task = queued.add("HANG", "twice")
    queued.runs(task)
    os.kill(queued.agent(), signal.SIGKILL)
    until(lambda: queued.task(task)["status"] == "waiting", "it waits for the next attempt")
    assert "was interrupted" in queued.task(task)["error"]
    until(lambda: queued.task(task)["attempt"] == 2, "it begins again")
    os.kill(queued.agent(), signal.SIGKILL)
    assert queued.ends(task, "failed")["worker"] == "twice-1-2"


def test_a_program_that_cannot_be_started_is_no_attempt(queued: Queued) -> None:
    task = queued.add(queue="broken")
    shown: Json = {}

    def could_not_be_started() -> bool:
        shown.update(queued.task(task))
        return shown["error"] is not None

    until(could_not_be_started, "it could not be started")
    assert (shown["status"], shown["attempt"]) == ("waiting", 0)
    assert "no agent could be started for it" in shown["error"]
    queued.call("cancel", task_id=task)


def test_a_worker_that_asks_holds_its_place_until_it_is_answered(queued: Queued) -> None:
    task = queued.add("ASK make\nSAY made")
    request = open_request(queued)
    assert queued.task(task)["status"] == "running"
    named = {"id": request["id"], "digest": request["digest"]}
    queued.call("request_answer", **named, answer="allow")
    assert queued.ends(task)["result"] == "made"


def test_a_message_to_a_worker_becomes_its_next_turn_before_it_is_done(queued: Queued) -> None:
    task = queued.add("ASK make\nSAY first")
    request = open_request(queued)
    queued.send(queued.task(task)["worker"], "SAY second")
    named = {"id": request["id"], "digest": request["digest"]}
    queued.call("request_answer", **named, answer="allow")
    assert queued.ends(task)["result"] == "second"


def test_delegate_returns_the_result_or_the_task_as_it_is(queued: Queued) -> None:
    done = queued.call("delegate", queue="build", payload="SAY now", from_handle="pm")
    assert (done["status"], done["result"]) == ("completed", "now")
    slow = queued.call("delegate", queue="build", payload="HANG", timeout=0, from_handle="pm")
    assert slow["status"] in ("running", "pending")
    queued.call("cancel", task_id=slow["task_id"])
    [message] = queued.gets("pm", 1)
    assert message["task_id"] == slow["task_id"]


def test_a_key_is_enqueued_once(queued: Queued) -> None:
    first = queued.add("HANG", key="release", from_handle="pm")
    assert queued.add("HANG", key="release", from_handle="pm") == first
    refusal = queued.daemon.refusal(
        "enqueue", queue="build", payload="other", key="release", from_handle="pm"
    )
    assert "belongs to task" in str(refusal)


def test_a_session_gives_no_work_to_a_profile_with_more_rights(queued: Queued) -> None:
    handle = queued.spawn(profile="asks")
    refusal = queued.daemon.refusal("enqueue", queue="full", payload="SAY x", from_handle=handle)
    assert "which is higher than 'ask'" in str(refusal)
    assert queued.call("task_list", queue="full") == {"result": []}


def test_a_kill_of_the_daemon_loses_nothing_and_repeats_nothing(queued: Queued) -> None:
    ended = queued.add("SAY before", from_handle="pm")
    queued.ends(ended)
    queued.gets("pm", 1)
    running, pending = queued.add("HANG", from_handle="pm"), queued.add("SAY after")
    worker = queued.runs(running)
    queued.daemon.kill()
    queued.start()
    lost = queued.ends(running, "failed")
    assert "was interrupted" in lost["error"]
    assert queued.ends(pending)["result"] == "after"
    assert [each["task_id"] for each in queued.gets("pm", 2)] == [ended, running]
    assert [each["turn"] for each in queued.entries(worker, "turn_opened")] == [1]
    assert queued.task(ended)["result"] == "before"


def test_a_paused_queue_stays_paused_over_a_restart(queued: Queued) -> None:
    assert queued.call("queue_pause", queue="build")["paused"]
    task = queued.add()
    queued.daemon.kill()
    queued.start()
    [info] = [each for each in queued.call("queue_list")["result"] if each["queue"] == "build"]
    assert (info["paused"], info["pending"]) == (True, 1)
    queued.call("queue_resume", queue="build")
    queued.ends(task)


def test_a_moved_task_begins_in_its_place_also_after_a_kill(queued: Queued) -> None:
    queued.call("queue_pause", queue="build")
    one, two, three = [queued.add(f"SAY {number}") for number in range(3)]
    moved = queued.daemon.cli("queue", "move", "build", three.lower(), "--before", one)
    assert (moved.returncode, three in moved.stdout) == (0, True)
    assert queued.daemon.cli("queue", "move", "build", one, "--last").returncode == 0
    assert queued.daemon.cli("queue", "move", "build", one).returncode == 2
    queued.daemon.kill()
    queued.start()

    def listed() -> list[str]:
        return [each["task_id"] for each in queued.call("task_list", queue="build")["result"]]

    assert listed() == [three, two, one]
    queued.call("queue_resume", queue="build")
    ends = {task: queued.ends(task)["ended"] for task in (one, two, three)}
    assert sorted(ends, key=lambda each: ends[each]) == [three, two, one]
    late = queued.daemon.cli("queue", "move", "build", one, "--first")
    assert (late.returncode, "has ended" in late.stderr) == (1, True)


def test_the_command_line_enqueues_waits_and_shows(queued: Queued) -> None:
    done = queued.daemon.cli("queue", "add", "--wait", "90000", "build", "SAY hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    added = queued.daemon.cli("queue", "add", "build", "HANG").stdout.strip()
    queued.runs(added)
    assert "running" in queued.daemon.cli("queue", "show", "build").stdout
    assert "build   asks    1/1" in queued.daemon.cli("queue", "list").stdout
    assert "worker: build-2" in queued.daemon.cli("queue", "task", added).stdout
    assert "cancelled" in queued.daemon.cli("queue", "cancel", added).stdout
    until(lambda: queued.info("build-2")["state"] == "closed", "its worker is closed")
    until(lambda: "running" in queued.daemon.cli("queue", "retry", added).stdout, "it is retried")
    waited = queued.daemon.cli("queue", "add", "--wait", "0.1", "build", "SAY hello")
    assert waited.returncode == 124


def test_a_crash_of_the_desk_loses_no_task_and_repeats_none(queued: Queued) -> None:
    queued.daemon.stop()
    queued.start(",".join(f"actor.receive.before[QueueDesk]@{each}=crash" for each in (9, 17)))
    tasks = [queued.add(f"WAIT 0.3\nSAY {number}", from_handle="pm") for number in range(3)]

    def are_ended() -> bool:
        with suppress(CommandFailed):  # the call that makes it crash is answered with that
            return all(queued.task(each)["ended"] for each in tasks)
        return False

    until(are_ended, "all tasks end")
    assert [queued.task(each)["result"] for each in tasks] == ["0", "1", "2"]
    assert [each["body"] for each in queued.gets("pm", 3)] == ["0", "1", "2"]
    assert "QueueDesk" in queued.daemon.log


def test_a_hostile_payload_is_shown_escaped(queued: Queued) -> None:
    task = queued.add("SAY \x1b]0;evil\x07 \u202e done")
    queued.ends(task)
    for words in (["show"], ["show", "--json"], ["task", task], ["task", task, "--json"]):
        shown = queued.daemon.cli("queue", *words).stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(shown), words


# Bad input.


def test_a_task_waits_only_for_tasks_that_exist_so_that_there_is_no_cycle(queued: Queued) -> None:
    """A cycle would need a task that names a later one, whose id nobody knows yet."""
    queued.call("queue_pause", queue="build")
    first = queued.add()
    unknown = f"{first[:-1]}{'0' if first[-1] != '0' else '1'}"
    files = sorted(queued.daemon.state.directory.rglob("*"))
    for after in ([unknown], [first, unknown], [first.lower()], ["0" * 26], ["x"], [""]):
        refused = queued.daemon.refusal("enqueue", queue="build", payload="SAY x", after=after)
        assert refused.code == "not_found"
        assert "\n" not in str(refused)
        assert "which `after` names" in str(refused)
    many = [first] * 101
    refused = queued.daemon.refusal("enqueue", queue="build", payload="SAY x", after=many)
    assert "at most 100 others" in str(refused)
    assert [each["task_id"] for each in queued.call("task_list")["result"]] == [first]
    assert sorted(queued.daemon.state.directory.rglob("*")) == files


@pytest.mark.long
async def test_of_a_hundred_thousand_tasks_as_many_are_taken_as_a_queue_holds(
    queued: Queued,
) -> None:
    """The others are refused with one sentence, the daemon answers, and a restart finds them."""
    await trio.to_thread.run_sync(partial(queued.call, "queue_pause", queue="build"))
    taken, refused = 0, set[tuple[str, str]]()

    async def enqueue(caller: Caller, count: int) -> None:
        nonlocal taken
        for _ in range(count):
            try:
                await caller.call("enqueue", queue="build", payload="SAY done")
                taken += 1
            except CommandFailed as error:
                refused.add((error.code, str(error)))

    async with line_caller(queued.daemon.endpoint) as caller, trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(enqueue, caller, 2_000)
    assert taken == MAX_LIVE
    [(code, sentence)] = refused
    assert code == "unavailable"
    assert f"has {MAX_LIVE} tasks that have not ended" in sentence
    assert "\n" not in sentence

    def restarted() -> Json:
        queued.daemon.kill()
        queued.start()
        [found] = [each for each in queued.call("queue_list")["result"] if each["queue"] == "build"]
        return dict(found)

    assert (await trio.to_thread.run_sync(restarted))["pending"] == MAX_LIVE


def test_a_task_of_the_archive_is_answered_after_a_kill(queued: Queued) -> None:
    path = queued.daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 1, "days": 0}}))
    queued.daemon.stop()
    queued.start()
    tasks = [queued.add(f"SAY {each}", key=f"k{each}") for each in range(4)]
    shown = [queued.ends(task) for task in tasks]
    archive = queued.daemon.root / ".aegis" / "state" / "archive" / "tasks"

    def live() -> set[str]:
        return {each["task_id"] for each in queued.call("task_list")["result"]}

    until(lambda: len(live()) == 1, "all but one are in the archive")
    assert list(archive.glob("*.jsonl.gz"))
    queued.daemon.kill()
    queued.start()
    assert len(live()) == 1
    assert [queued.task(task) for task in tasks] == shown
    for number, task in enumerate(tasks):
        assert queued.add(f"SAY {number}", key=f"k{number}") == task


@pytest.mark.parametrize("point", COMPACTION)
def test_a_kill_while_a_ledger_is_replaced_loses_no_task(queued: Queued, point: str) -> None:
    path = queued.daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 1, "days": 0}}))
    queued.daemon.stop()
    queued.start(faults=f"{point}[build.jsonl]@1=kill")
    queued.call("queue_pause", queue="build")
    payload = "SAY " + 4_000 * "x"
    kept = [queued.add(payload, key=f"kept{each}") for each in range(2)]
    # What is in the archive is out of date in the ledger: after 64 KiB it is replaced.
    ended: list[str] = []
    with suppress(ConnectionLost, NoDaemon):
        for number in range(60):
            task = queued.add(payload, key=f"ended{number}")
            queued.call("cancel", task_id=task)
            ended.append(task)
    assert queued.daemon.wait_dead(GUARD_S), f"{point} was not reached"
    queued.daemon.kill()
    queued.start()
    assert {queued.task(task)["status"] for task in ended} == {"cancelled"}
    assert [queued.task(task)["status"] for task in kept] == ["pending", "pending"]
    assert [queued.add(payload, key=f"ended{n}") for n in range(len(ended))] == ended
    assert [queued.add(payload, key=f"kept{n}") for n in range(2)] == kept
    ledger = queued.daemon.state.directory / "queues" / "build.jsonl"
    assert not ledger.with_name("build.jsonl.next").exists()
