"""Workflows of a real daemon: their engine, their journal, and plugins that misbehave."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from aegis.client.line import CommandFailed
from tests.e2e.harness import PROGRAM, DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real

Json = dict[str, Any]

PLUGIN = '''
"""Workflows of the tests."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Literal

from aegis import StepInterrupted, workflow

ROOT = Path(os.getcwd())


def did(what):
    """Count an effect, durably enough for a kill."""
    with (ROOT / "effects").open("a") as file:
        file.write(f"{what}\\n")
    return what


@workflow
async def hello(engine, *, name: str = "world", times: int = 1):
    """Greet somebody.

    Several times.
    """
    return " ".join([f"hello {name}"] * times)


@workflow
async def steps(engine, *, count: int, die_at: int = -1):
    done = []
    for number in range(count):
        done.append(await engine.step(f"step {number}", lambda: did(number)))
        if number == die_at and not (ROOT / "died").exists():
            (ROOT / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return sum(done)


@workflow
async def waits(engine):
    did("first")
    await engine.step("a", lambda: did("a"))
    answer = await engine.ask_human("Release?", options=["yes", "no"])
    return [answer, await engine.step("b", lambda: did("b"))]


@workflow
async def interrupted(engine, *, retry: bool = False, catches: bool = False):
    def once():
        did("begun")
        if not (ROOT / "died").exists():
            (ROOT / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return did("done")

    try:
        return await engine.step("once", once, retry=retry)
    except StepInterrupted:
        if not catches:
            raise
        return await engine.step("instead", lambda: did("instead"))


@workflow
async def commands(engine):
    result = await engine.bash("echo out; echo err >&2; exit 3")
    failed = await engine.bash_predicate("test -e made")
    made = await engine.bash_predicate(
        "test -e made", retry_with=lambda _: engine.bash("touch made")
    )
    slow = await engine.bash("sleep 60", timeout=0.2)
    return [result.exit, result.stdout, result.stderr, failed, made, slow.timed_out, slow.exit]


@workflow
async def agents(engine, *, profile: str = "asks"):
    handle = await engine.spawn(profile)
    first = await engine.send(handle, "SAY one")
    second = await engine.send(handle, "SAY two")
    await engine.drain(handle)
    return [handle, first, second]


@workflow
async def delegates(engine, *, queue: str = "build", payload: str = "SAY from the queue"):
    return await engine.delegate(queue, payload)


@workflow
async def committee(engine):
    group = await engine.group(["asks", "asks"])
    found = await group.broadcast("SAY yes", reducer="majority_vote")
    return [len(found.replies), found.reduced, found.missing, group.name]


@workflow
async def as_client(engine, *, program: str):
    shown = await engine.bash(f"{program} status --json")
    return [shown.exit, shown.stdout + shown.stderr]


@workflow
async def at_once(engine):
    async def branch(number):
        first = await engine.bash(f"echo {number}")
        return [first.stdout.strip(), await engine.step(f"branch {number}", lambda: did(number))]

    *first, last = await engine.parallel([branch(0), lambda: branch(1), engine.bash("true")])
    return [*first, last.exit]


@workflow
async def on_terminal(engine, *, name: str):
    result = await engine.terminal(name).run("echo $((6 * 7))")
    return [result.exit, result.stdout]


@workflow
async def checkpoints(engine, *, upto: int):
    state = engine.resume_state()
    start = state.payload["done"] if state else 0
    for number in range(start, upto):
        did(f"loop {number}")
        await engine.step(f"item {number}", lambda: did(f"item {number}"))
        await engine.checkpoint("progress", {"done": number + 1})
        if number == 1 and not (ROOT / "died").exists():
            (ROOT / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return start


@workflow
async def logs(engine):
    print("printed")
    engine.log("logged once")
    await engine.step("a", lambda: 1)
    engine.log("logged twice")
    if not (ROOT / "died").exists():
        (ROOT / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.environ.get("AEGIS_TEST_SECRET", "no secret"), engine.host, engine.config["queues"]


@workflow
async def exits(engine):
    sys.exit(3)


@workflow
async def quits(engine):
    did("quit")
    os._exit(0)


@workflow
async def never_awaits(engine):
    did("spinning")
    while True:
        pass


@workflow
async def forks(engine):
    pid = os.fork()
    if pid == 0:
        await engine.step("in the child", lambda: did("in the child"))
    os.waitpid(pid, 0)
    return await engine.step("in the parent", lambda: did("in the parent"))


@workflow
async def no_json(engine):
    return {1, 2}


@workflow
async def too_much(engine):
    return "x" * 10_000_000


@workflow
async def raises(engine):
    await engine.step("s", lambda: 1 / 0)


@workflow
async def typed(engine, *, one: list[int], two: Literal["a", "b"] | None = None):
    return [one, two]


@workflow
async def two_at_once(engine):
    import trio

    async with trio.open_nursery() as nursery:
        nursery.start_soon(engine.bash, "sleep 0.5")
        nursery.start_soon(engine.bash, "sleep 0.5")
'''


class Working(Team):
    """A daemon with plugins, queues and stand-in agents."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        command = [sys.executable, str(STAND_IN), "claude"]
        agents: dict[str, Json] = {
            name: {"provider": "claude", "permission": permission, "command": [*command]}
            for name, permission in (("asks", "ask"), ("all", "full"))
        }
        configuration = {"agents": agents, "queues": {"build": {"agent": "asks"}}}
        (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
        self.plugins = daemon.root / ".aegis" / "plugins"
        self.plugins.mkdir(parents=True)
        self.plugin("tests", PLUGIN)
        self.start()

    def plugin(self, name: str, text: str) -> None:
        (self.plugins / f"{name}.py").write_text(text)

    def start(self, faults: str = "") -> None:
        self.daemon.start("--port", "0", "--trust", faults=faults)

    def run(
        self, name: str, /, *, as_: str | None = None, key: str | None = None, **kwargs: Any
    ) -> str:
        reply = self.call("run_workflow", name=name, kwargs=kwargs, from_handle=as_, key=key)
        assert reply["status"] == "running"
        id_: str = reply["workflow_id"]
        return id_

    def status(self, id_: str) -> Json:
        return self.call("workflow_status", workflow_id=id_)

    def ends(self, id_: str, status: str = "completed") -> Json:
        until(lambda: bool(self.status(id_)["ended"]), f"workflow {id_} ends")
        ended = self.status(id_)
        assert ended["status"] == status, (ended["error"], ended)
        return ended

    def result(self, id_: str) -> Any:
        return json.loads(self.ends(id_)["result"])

    def waits_for(self, id_: str, call: str) -> None:
        until(
            lambda: any(call in each for each in self.status(id_)["current"]),
            f"it waits for {call}",
        )

    def reopen(self, command: str, id_: str) -> None:
        """Resume or retry a workflow, once it is settled."""

        def is_reopened() -> bool:
            with suppress(CommandFailed):  # while it is still being ended
                self.call(command, workflow_id=id_)
                return True
            return False

        until(is_reopened, f"{id_} runs again")

    @property
    def effects(self) -> list[str]:
        path = self.daemon.root / "effects"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def journal(self, id_: str) -> list[tuple[str, Json]]:
        """Return the changes of a run's calls, each with the position of the call."""
        return [(each["id"], each["set"]) for each in _lines(self.directory(id_) / "ledger.jsonl")]

    def changes(self, id_: str) -> list[Json]:
        """Return the changes of a run."""
        lines = _lines(self.directory(id_).parent / "runs.jsonl")
        return [each["set"] for each in lines if each["id"] == id_]

    def is_settled(self, id_: str) -> bool:
        return bool(self.changes(id_)[-1] == {"is_settled": True})

    def directory(self, id_: str) -> Path:
        return self.daemon.state.directory / "workflows" / id_


def _lines(ledger: Path) -> list[Json]:
    return [json.loads(line) for line in ledger.read_bytes().splitlines()]


@pytest.fixture
def working(own_daemon: DaemonProcess) -> Iterator[Working]:
    yield Working(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_a_workflow_returns_its_result_and_notifies_its_starter(working: Working) -> None:
    id_ = working.run("hello", name="you", times=2, as_="pm")
    ended = working.ends(id_)
    assert ended["result"] == '"hello you hello you"'
    until(lambda: len(working.inbox("pm")) == 1, "its starter is notified")
    [message] = working.inbox("pm")
    assert message["text"].startswith(f"> from workflow:hello · task#{id_} · ok · ")
    assert (message["body"], message["id"]) == ("hello you hello you", f"workflow:{id_}/end")


def test_the_result_is_synced_before_the_starter_is_notified(working: Working) -> None:
    id_ = working.run("steps", count=3, as_="pm")
    assert working.result(id_) == 3
    until(lambda: working.is_settled(id_), "it is settled")
    ended = ["end" in changes for _, changes in working.journal(id_)]
    assert ended == [False, True] * 3
    start, first, end, settled = working.changes(id_)
    assert start["name"] == "steps"
    assert (first, settled) == ({"processes": 1}, {"is_settled": True})
    assert (end["phase"], end["result"], end["calls"]) == ("completed", "3", 3)
    assert working.effects == ["0", "1", "2"]


# Restarts.


def test_a_finished_step_is_not_done_again_after_the_death_of_its_process(working: Working) -> None:
    id_ = working.run("steps", count=6, die_at=3)
    assert working.result(id_) == 15
    assert working.effects == ["0", "1", "2", "3", "4", "5"]
    assert working.status(id_)["runs"] == 2


def test_a_crash_of_the_actor_of_a_process_costs_only_the_process(working: Working) -> None:
    working.daemon.stop()
    # The start, the go and the order to proceed come before: it is the answer to the first step.
    working.start("actor.receive.before[WorkflowProcess]@4=crash")
    id_ = working.run("waits")
    until(lambda: '"crashed"' in working.daemon.log, "the actor crashes")
    until(lambda: working.status(id_)["runs"] == 2, "it runs again")
    working.waits_for(id_, "ask_human")
    working.call("workflow_cancel", workflow_id=id_)


def test_a_killed_guard_costs_only_the_process(working: Working) -> None:
    id_ = working.run("waits")
    working.waits_for(id_, "ask_human")
    [guard] = [each for each in workflow_processes(working.daemon) if not is_child(each)]
    os.kill(guard, signal.SIGKILL)
    until(lambda: working.status(id_)["runs"] == 2, "it runs again")
    working.waits_for(id_, "ask_human")
    assert len([each for each in workflow_processes(working.daemon) if is_child(each)]) == 1
    working.call("workflow_cancel", workflow_id=id_)


def test_a_question_outlives_a_restart_and_finished_steps_do_too(working: Working) -> None:
    id_ = working.run("waits", as_="pm")
    request = open_request(working)
    assert (request["workflow"], request["handle"], request["title"]) == (
        id_,
        "pm",
        "waits asks: Release?",
    )
    working.daemon.kill()
    working.start()
    working.waits_for(id_, "ask_human")
    again = open_request(working)
    assert again["id"] == request["id"]
    working.call(
        "request_answer",
        id=again["id"],
        digest=again["digest"],
        answer="allow",
        values={"Release?": "yes"},
    )
    assert working.result(id_) == ["yes", "b"]
    assert working.effects == ["first", "a", "first", "b"]
    assert working.status(id_)["runs"] == 2


def test_an_interrupted_step_is_reported_and_resumed_by_a_person(working: Working) -> None:
    id_ = working.run("interrupted", as_="pm")
    failed = working.ends(id_, "failed")
    assert failed["error"].startswith("StepInterrupted: call 1, step('once'), was interrupted")
    until(lambda: len(working.inbox("pm")) == 1, "its starter is notified")
    assert working.inbox("pm")[0]["status"] == "error"
    working.reopen("workflow_resume", id_)
    assert working.result(id_) == "done"
    assert working.effects == ["begun", "begun", "done"]
    until(lambda: len(working.inbox("pm")) == 2, "its starter is notified again")


def test_a_step_with_retry_is_done_again_after_an_interruption(working: Working) -> None:
    assert working.result(working.run("interrupted", retry=True)) == "done"
    assert working.effects == ["begun", "begun", "done"]


def test_an_interruption_that_is_caught_stays_caught_in_later_replays(working: Working) -> None:
    id_ = working.run("interrupted", catches=True)
    assert working.result(id_) == "instead"
    assert working.effects == ["begun", "instead"]


def test_a_workflow_continues_behind_its_last_checkpoint(working: Working) -> None:
    id_ = working.run("checkpoints", upto=4)
    assert working.result(id_) == 2
    items = [each for each in working.effects if each.startswith("item")]
    assert items == [f"item {each}" for each in range(4)]
    assert [each for each in working.effects if each.startswith("loop")] == [
        f"loop {each}" for each in range(4)
    ]
    assert working.status(id_)["checkpoint"] == "progress"


def test_a_changed_workflow_fails_with_both_calls_named(working: Working) -> None:
    working.plugin("change", CHANGED.format(cmd="echo 1"))
    working.call("workflow_trust")
    id_ = working.run("changing")
    working.waits_for(id_, "ask_human")
    working.daemon.kill()
    working.plugin("change", CHANGED.format(cmd="echo 2"))
    working.start()
    error = working.ends(id_, "failed")["error"]
    assert "call 1 is bash('echo 2') now, and was bash('echo 1') in the journal" in error
    working.plugin("change", CHANGED.format(cmd="echo 1"))
    working.call("workflow_trust")
    working.reopen("workflow_resume", id_)
    working.waits_for(id_, "ask_human")


CHANGED = """
from aegis import workflow

@workflow
async def changing(engine):
    await engine.bash({cmd!r})
    await engine.ask_human("Go on?")
"""


def test_a_completed_workflow_is_never_run_again(working: Working) -> None:
    id_ = working.run("steps", count=2, key="release", as_="pm")
    working.ends(id_)
    until(lambda: working.is_settled(id_), "it is settled")
    working.daemon.kill()
    working.start()
    assert working.status(id_)["runs"] == 1
    refusal = working.daemon.refusal("workflow_resume", workflow_id=id_)
    assert "is completed" in str(refusal)
    assert working.call(
        "run_workflow", name="steps", kwargs={"count": 2}, key="release", from_handle="pm"
    ) == {"workflow_id": id_, "status": "completed"}
    assert working.effects == ["0", "1"]


def test_a_failed_workflow_is_run_from_its_beginning_by_a_retry(working: Working) -> None:
    id_ = working.run("raises")
    assert "StepFailed: step 's': ZeroDivisionError" in working.ends(id_, "failed")["error"]
    assert "ZeroDivisionError" in working.status(id_)["log"]
    working.reopen("workflow_retry", id_)
    assert "ZeroDivisionError" in working.ends(id_, "failed")["error"]
    assert [each["attempt"] for each in working.changes(id_) if "attempt" in each] == [2]


def test_a_crash_of_the_desk_loses_no_workflow(working: Working) -> None:
    working.daemon.stop()
    working.start("actor.receive.before[WorkflowDesk]@12=crash")
    id_ = working.run("steps", count=8)
    until(lambda: "WorkflowDesk" in working.daemon.log, "the desk crashes")

    def has_ended() -> bool:
        with suppress(CommandFailed):  # the call that makes it crash is answered with that
            return bool(working.status(id_)["ended"])
        return False

    until(has_ended, "the workflow ends")
    if working.status(id_)["status"] == "failed":  # the crash has struck inside of a step
        assert "StepInterrupted" in working.status(id_)["error"]
        assert len(set(working.effects)) == len(working.effects)
        working.reopen("workflow_resume", id_)
    assert working.result(id_) == 28
    assert sorted(set(working.effects)) == [str(each) for each in range(8)]
    assert len(working.effects) <= 9


# A full disk.


def test_a_full_disk_starts_no_workflow_and_leaves_nothing(working: Working) -> None:
    working.daemon.stop()
    working.start("ledger.append.before[runs.jsonl]@1=enospc")
    refusal = str(working.daemon.refusal("run_workflow", name="hello"))
    assert "No space left on device" in refusal
    assert "\n" not in refusal
    assert working.call("workflow_list")["result"] == []
    directory = working.daemon.state.directory / "workflows"
    assert [each.name for each in directory.iterdir()] == ["runs.jsonl"]
    assert working.result(working.run("hello")) == "hello world"


@pytest.mark.parametrize("point", ["append.before", "sync.before"])
def test_a_full_disk_delays_a_workflow_and_repeats_nothing(working: Working, point: str) -> None:
    working.daemon.stop()
    working.start(",".join(f"ledger.{point}[ledger.jsonl]@{each}=enospc" for each in (3, 6)))
    id_ = working.run("steps", count=4)
    until(lambda: "No space left" in working.status(id_)["problem"], "it waits for the disk")
    assert working.result(id_) == 6
    assert working.effects == ["0", "1", "2", "3"]
    assert working.status(id_)["runs"] == 1


# The engine.


def test_commands_return_their_output_and_are_repaired(working: Working) -> None:
    result = working.result(working.run("commands"))
    assert result == [3, "out\n", "err\n", False, True, True, None]


def test_agents_are_spawned_answer_and_are_closed_at_the_end(working: Working) -> None:
    id_ = working.run("agents")
    handle, first, second = working.result(id_)
    assert (first, second) == ("one", "two")
    until(lambda: working.info(handle)["state"] == "closed", "its session is closed")
    assert working.info(handle)["spawned_by"] == "workflow:agents"
    opened = working.entries(handle, "turn_opened")
    assert opened[0]["text"].startswith("> from workflow:agents · ")


def test_a_task_is_delegated_to_a_queue(working: Working) -> None:
    assert working.result(working.run("delegates")) == "from the queue"
    failed = working.ends(working.run("delegates", queue="none"), "failed")
    assert failed["error"].startswith("CallFailed: there is no queue 'none'")


def test_a_group_is_gathered_asked_and_dissolved(working: Working) -> None:
    count, reduced, missing, name = working.result(working.run("committee"))
    assert (count, reduced, missing) == (2, "yes", {})

    assert name.startswith("committee-")
    until(lambda: working.call("group_list")["result"] == [], "its group is dissolved")
    assert working.call("list_sessions")["result"] == []


def test_a_process_of_a_workflow_is_a_client_with_the_rights_of_its_starter(
    working: Working,
) -> None:
    program = str(PROGRAM)
    code, shown = working.result(working.run("as_client", program=program))
    assert code == 0, shown
    code, shown = working.result(working.run("as_client", program=program, as_="pm"))
    assert code != 0
    assert "is for the operator only, and you are 'pm'" in shown


def test_branches_run_at_the_same_time_with_places_of_their_own(working: Working) -> None:
    id_ = working.run("at_once")
    first, second, _ = working.result(id_)
    assert (first, second) == (["0", 0], ["1", 1])
    positions = {position for position, _ in working.journal(id_)}
    assert positions == {"1/0/1", "1/0/2", "1/1/1", "1/1/2", "1/2/1"}


def test_engine_calls_at_the_same_time_need_parallel(working: Working) -> None:
    error = working.ends(working.run("two_at_once"), "failed")["error"]
    assert "engine calls at the same time go through engine.parallel" in error


def test_a_command_on_a_shared_terminal_is_seen_by_all(working: Working) -> None:
    working.call("term_spawn", name="build")
    assert working.result(working.run("on_terminal", name="build")) == [0, "42\n"]
    [record] = working.call("term_read", name="build")["result"]
    assert record["cmd"] == "echo $((6 * 7))"


def test_what_a_workflow_prints_and_logs_is_in_its_log(working: Working) -> None:
    id_ = working.run("logs")
    secret, _, queues = working.result(id_)
    assert (secret, queues) == ("no secret", {"build": {"agent": "asks", "max_parallel": 1}})
    log = working.status(id_)["log"]
    assert log.count("logged once") == 1
    assert log.count("logged twice") >= 1
    assert "printed" in log


def test_a_run_is_answered_from_the_archive_with_its_log_after_a_kill(working: Working) -> None:
    path = working.daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 0, "days": 0}}))
    working.daemon.stop()
    working.start()
    id_ = working.run("logs", key="k")
    working.result(id_)
    directory = working.daemon.state.directory / "workflows" / id_
    until(lambda: not directory.exists(), "it is archived")
    shown = working.status(id_)
    assert "logged once" in shown["log"]
    working.daemon.kill()
    working.start()
    assert working.status(id_) == shown
    again = working.call("run_workflow", name="logs", key="k")
    assert (again["workflow_id"], again["status"]) == (id_, "completed")
    [found] = working.call("history", kind="run", name="logs")["result"]
    assert (found["id"], found["archived"], found["outcome"]) == (id_, True, "completed")
    assert found["began"] == shown["started"]
    printed = working.daemon.cli("history", "--kind", "run").stdout
    assert f"run logs {id_}  completed" in printed


def test_the_steps_of_a_run_are_shown_also_after_a_kill(working: Working) -> None:
    id_ = working.run("steps", count=3)
    assert working.result(id_) == 3
    found = working.call("workflow_steps", workflow_id=id_)
    assert (found["total"], "more" in found) == (3, False)
    assert [(e["number"], e["kind"], e["state"], e["result"]) for e in found["result"]] == [
        (number + 1, "step", "completed", str(number)) for number in range(3)
    ]
    assert all(each["started"] <= each["ended"] for each in found["result"])
    working.daemon.kill()
    working.start()
    assert working.call("workflow_steps", workflow_id=id_) == found
    printed = working.daemon.cli("workflow", "steps", id_.lower(), "--after", "2").stdout
    assert "step 2" in printed
    assert "step 1" not in printed


def test_a_cancelled_workflow_ends_with_its_sessions_and_questions(working: Working) -> None:
    id_ = working.run("waits", as_="pm")
    open_request(working)
    refusal = working.daemon.refusal("workflow_cancel", workflow_id=id_, from_handle="dev")
    assert "was started by agent:pm" in str(refusal)
    cancelled = working.call("workflow_cancel", workflow_id=id_, from_handle="pm")
    assert (cancelled["status"], cancelled["error"]) == (
        "cancelled",
        "it was cancelled by agent:pm",
    )
    until(lambda: working.call("request_list")["requests"] == [], "its question is withdrawn")
    again = working.daemon.refusal("workflow_cancel", workflow_id=id_)
    assert "has ended already" in str(again)


# Rights.


def test_a_workflow_may_do_what_its_starter_may(working: Working) -> None:
    handle = working.spawn(profile="asks")
    for name, more in (("agents", {"profile": "all"}),):
        id_ = working.run(name, as_=handle, **more)
        error = working.ends(id_, "failed")["error"]
        assert "has the permission 'full', which is higher than 'ask'" in error, error
    assert working.ends(working.run("agents", as_=handle))["status"] == "completed"


# Plugins that misbehave, and bad arguments.


def test_code_that_never_awaits_holds_nothing_and_can_be_ended(working: Working) -> None:
    id_ = working.run("never_awaits")
    until(lambda: working.effects == ["spinning"], "it spins")
    assert working.result(working.run("hello")) == "hello world"
    working.call("workflow_cancel", workflow_id=id_)
    until(lambda: workflow_processes(working.daemon) == [], "its process is ended")


def workflow_processes(daemon: DaemonProcess) -> list[int]:
    mark = f"AEGIS_TERMINAL={daemon.root}//w/".encode()
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if mark in (each / "environ").read_bytes():
                    found.append(int(each.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("exits", "it called sys.exit(3)"),
        ("no_json", "ValueError: the result is not JSON"),
        ("too_much", "ValueError: the result is 10000002 bytes long"),
    ],
)
def test_what_a_workflow_does_wrong_is_its_result(working: Working, name: str, error: str) -> None:
    assert error in working.ends(working.run(name), "failed")["error"]


def test_a_process_that_ends_without_a_result_is_started_again_three_times(
    working: Working,
) -> None:
    error = working.ends(working.run("quits"), "failed")["error"]
    assert error == (
        "its process ended 3 times without progress: the process ended with exit code 0"
    )
    assert working.effects == ["quit"] * 3


def test_a_fork_has_no_part_in_the_workflow(working: Working) -> None:
    assert working.result(working.run("forks")) == "in the parent"
    assert working.effects == ["in the parent"]


def test_a_plugin_that_does_not_import_costs_only_itself(working: Working) -> None:
    working.plugin("broken", "import aegis\n\nx = missing\n")
    working.plugin("syntax", "def f(:\n")
    working.plugin("exits", "import sys\nsys.exit(4)\n")
    working.plugin("quits", "import os\nos._exit(5)\n")
    working.plugin("sync", "from aegis import workflow\n\n@workflow\ndef f(engine): ...\n")
    working.plugin(
        "odd", "from aegis import workflow\n\n@workflow\nasync def g(e, *, x: set): ...\n"
    )
    working.call("workflow_trust")
    listed = working.call("workflow_list")
    problems = {Path(each["file"]).name: each["problem"] for each in listed["problems"]}
    assert problems["broken.py"] == "line 3: NameError: name 'missing' is not defined"
    assert problems["syntax.py"].startswith("line 1: SyntaxError: ")
    assert problems["exits.py"] == "line 2: it called sys.exit(4) while it was imported"
    assert problems["quits.py"] == ("its import did not end: the process ended with exit code 5")
    assert "TypeError: @workflow: f must be an async def" in problems["sync.py"]
    assert ": g: parameter 'x': set cannot be checked" in problems["odd.py"]
    assert "hello" in {each["name"] for each in listed["workflows"]}
    refusal = str(working.daemon.refusal("run_workflow", name="f"))
    assert "there is no workflow 'f'" in refusal
    assert ".py has a problem (and 5 more)" in refusal


@pytest.mark.parametrize(
    ("name", "kwargs", "sentence"),
    [
        ("nothing", {}, "there is no workflow 'nothing'"),
        ("helo", {}, "did you mean 'hello'?"),
        ("hello", {"nme": "x"}, "there is no argument 'nme'; did you mean 'name'?"),
        ("hello", {"times": "2"}, "the argument 'times' must be a whole number, not '2'"),
        ("hello", {"times": True}, "the argument 'times' must be a whole number, not True"),
        ("steps", {}, "the argument 'count' is missing: a whole number"),
        ("typed", {"one": ["x"]}, "must be a list, each a whole number, not ['x']"),
        ("typed", {"one": [], "two": "c"}, "must be 'a' or 'b' or null, not 'c'"),
        ("hello", {"name": "x" * 1_000_000}, "must be at most 65536 bytes long as JSON"),
    ],
)
def test_bad_arguments_are_refused_before_anything_starts(
    working: Working, name: str, kwargs: Json, sentence: str
) -> None:
    refusal = working.daemon.refusal("run_workflow", name=name, kwargs=kwargs)
    assert sentence in str(refusal)
    assert working.call("workflow_list")["result"] == []
    directory = working.daemon.state.directory / "workflows"
    assert not directory.exists() or list(directory.iterdir()) == []


def test_a_file_that_is_not_trusted_is_never_run(working: Working) -> None:
    working.plugin("evil", EVIL)
    listed = working.call("workflow_list")
    [problem] = listed["problems"]
    assert problem["problem"].startswith("it has changed since you trusted it, or is new")
    assert "there is no workflow 'evil'" in str(working.daemon.refusal("run_workflow", name="evil"))
    working.daemon.stop()
    refused = working.daemon.cli("up", "--port", "0")
    assert refused.returncode == 1
    assert "the plugin .aegis/plugins/evil.py" in refused.stderr
    assert working.effects == []
    working.start()
    working.call("run_workflow", name="evil")
    until(lambda: working.effects != [], "a trusted one is run")


EVIL = """
from pathlib import Path
from aegis import workflow

Path("effects").write_text("imported\\n")

@workflow
async def evil(engine): ...
"""


def test_a_changed_file_is_not_run_by_a_process_that_starts_later(working: Working) -> None:
    id_ = working.run("waits")
    working.waits_for(id_, "ask_human")
    working.plugin("tests", PLUGIN + "\ndid('changed')\n")
    [pid] = [each for each in workflow_processes(working.daemon) if is_child(each)]
    os.kill(pid, signal.SIGKILL)
    failed = working.ends(id_, "failed")
    assert failed["error"] == "its plugin is gone, or not trusted"
    assert "changed" not in working.effects


def is_child(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended meanwhile
    return b"aegis.workflows.child" in words and not any(b"guard.py" in each for each in words)
