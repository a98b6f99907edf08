"""Replays of workflows by a real daemon: their order, their time, their cancellations and ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import agents_of
from tests.e2e.test_workflows import Working
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

Json = dict[str, Any]

PLUGIN = r'''
import os
from pathlib import Path

import trio
from aegis import TimedOut, workflow


def did(what):
    with Path("effects").open("a") as file:
        file.write(f"{what}\n")


async def hold(engine):
    """Wait for a person: the test kills the daemon here, and answers after it has restarted."""
    return await engine.ask_human("Go on?", options=["yes"])


@workflow
async def race(engine):
    """Branches that meet at a list, a lock and a channel, and a clock that is read."""
    order, lock = [], trio.Lock()
    send, receive = trio.open_memory_channel(10)

    async def one(name, pause, timer):
        await engine.bash(f"sleep {pause}")
        order.append(name)
        async with lock:
            await trio.sleep(timer)
            order.append(f"lock {name}")
            await engine.step(name, lambda: did(name))
        await send.send(name)
        order.append(f"sent {name} at {trio.current_time()}")

    async def timers(name, seconds):
        await trio.sleep(seconds)
        order.append(f"timer {name}")
        await send.send(name)

    branches = [lambda n=n: one(f"b{n}", 0.3 - n / 10, n / 20) for n in range(3)]
    branches += [lambda n=n: timers(f"t{n}", n / 10) for n in range(4)]
    await engine.parallel(branches)
    order += [receive.receive_nowait() for _ in range(7)]
    await engine.bash("true " + ",".join(order))
    await hold(engine)
    await engine.bash("true " + ",".join(order))
    return order


@workflow
async def leaves(engine):
    """Calls that the workflow leaves: by Trio's scopes, and by their own time limits."""
    handle = await engine.spawn("asks")
    group = await engine.group(["asks"])
    found = []
    slow = "ASK never"
    calls = {
        "question": lambda: engine.ask_human("Late?", options=["yes", "no"]),
        "bash": lambda: engine.bash("echo bash >>effects; sleep 300"),
        "step": lambda: engine.step("slow", step),
        "terminal": lambda: engine.terminal("t").run("sleep 300"),
        "send": lambda: engine.send(handle, slow),
        "delegate": lambda: engine.delegate("build", slow),
        "broadcast": lambda: group.broadcast(slow),
        "parallel": lambda: engine.parallel(
            [lambda: engine.ask_human("Both?"), lambda: engine.bash("sleep 300")]
        ),
    }
    for name, call in calls.items():
        with trio.move_on_after(0.5) as scope:
            await call()
        found.append(f"{name} {'left' if scope.cancelled_caught else 'ended'}")
        await engine.step(f"after {name}", lambda: did(name))
    await hold(engine)
    await engine.bash("true " + ",".join(found))
    return found


async def step():
    await trio.sleep_forever()


@workflow
async def limits(engine):
    """The same calls with their own limits."""
    handle = await engine.spawn("asks")
    group = await engine.group(["asks"])
    slow, found = "ASK never", []
    calls = [
        lambda: engine.ask_human("Late?", timeout=0.3),
        lambda: engine.step("slow", step, timeout=0.3),
        lambda: engine.send(handle, slow, timeout=2),
        lambda: engine.drain(handle, timeout=0.3),
        lambda: engine.delegate("build", slow, timeout=0.3),
        lambda: group.broadcast(slow, timeout=0.3),
        lambda: engine.parallel([lambda: engine.ask_human("Both?")], timeout=0.3),
    ]
    for call in calls:
        try:
            await call()
        except TimedOut as error:
            found.append(str(error))
    await hold(engine)
    await engine.bash("true " + ",".join(found))
    return found


@workflow
async def values(engine):
    """Values that JSON cannot carry, through steps, commands, a checkpoint and restarts."""
    os.makedirs(b"names", exist_ok=True)
    Path("names", "caf\udce9.txt").write_text("x")
    state = engine.resume_state()
    if state is None:
        names = await engine.step("names", lambda: os.listdir("names"))
        given = [names, (1, (2,)), {1: b"\xff", None: -0.0, (1, 2): True}, 10**400, "\ud83d\ude00"]
        kept = await engine.step("kept", lambda: given)
        assert kept == given, kept
        assert repr(kept) == repr(given)
        await engine.checkpoint("kept", {"given": tuple(given)})
    else:
        given = list(state.payload["given"])
    again = await engine.step("again", lambda: given)
    found = await engine.bash(f"cat 'names/{again[0][0]}'")
    print("printed", again[0][0])
    engine.log(again[0][0])
    await hold(engine)
    return [ascii(again), found.stdout]


@workflow
async def refused(engine, *, what: str):
    import enum, pathlib, sys

    class Colour(enum.IntEnum):
        RED = 1

    loop = []
    loop.append(loop)
    value = {
        "nan": float("nan"), "set": {1}, "path": pathlib.Path("a"), "enum": Colour.RED,
        "loop": loop, "digits": 10**5000,
    }[what]
    return await engine.step("s", lambda: value)


@workflow
async def swallows(engine):
    """A workflow that a test edits while its question is open."""
    did("deploy")
    answer = "no"
    try:
        answer = await engine.ask_human("QUESTION", options=["yes", "no"])
    except Exception:
        did("caught")
    except BaseException:
        did("caught all")
    for call in (
        lambda: engine.bash("echo bash >>effects"),
        lambda: engine.step("rollback", lambda: did("rollback")),
        lambda: engine.parallel([lambda: did("parallel")]),
        lambda: engine.checkpoint("c"),
    ):
        try:
            await call()
        except BaseException:
            pass
    return answer
'''


class Replaying(Working):
    """A daemon that is killed while workflows wait, and started again."""

    def __init__(self, daemon: DaemonProcess) -> None:
        super().__init__(daemon)
        self.edit()

    def edit(self, question: str = "Release?") -> None:
        self.plugin("replays", PLUGIN.replace("QUESTION", question))
        self.call("workflow_trust")

    def kill(self) -> None:
        self.daemon.kill()
        self.start()

    def question(self, title: str) -> Json | None:
        found = self.daemon.call("request_list")["requests"]
        return next((each for each in found if title in each["title"]), None)

    def has_question(self, title: str = "Go on?") -> Json:
        until(lambda: self.question(title) is not None, f"{title} is asked")
        found = self.question(title)
        assert found is not None
        return found

    def answer(self, request: Json, text: str = "yes") -> Json:
        [question] = request["input"]["questions"]
        return self.call(
            "request_answer",
            id=request["id"],
            digest=request["digest"],
            answer="allow",
            values={question["question"]: text},
        )

    def runs(self, id_: str, number: int) -> None:
        until(lambda: self.status(id_)["runs"] == number, f"process {number} of it runs")


@pytest.fixture
def replaying(own_daemon: DaemonProcess) -> Iterator[Replaying]:
    yield Replaying(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_a_replay_gives_branches_locks_channels_and_timers_their_recorded_order(
    replaying: Replaying,
) -> None:
    ids = [replaying.run("race") for _ in range(3)]
    for number in (2, 3):
        until(lambda: len(replaying.daemon.call("request_list")["requests"]) == 3, "all wait")
        replaying.kill()
        for each in ids:
            replaying.runs(each, number)
            replaying.waits_for(each, "ask_human")
    for request in replaying.daemon.call("request_list")["requests"]:
        replaying.answer(request)
    for each in ids:
        assert len(replaying.result(each)) == 3 * 3 + 4 + 7
    assert sorted(replaying.effects) == sorted(f"b{each}" for each in range(3) for _ in ids)


@pytest.mark.parametrize("name", ["leaves", "limits"])
def test_a_call_that_the_workflow_leaves_has_an_end_and_is_left_again_in_a_replay(
    replaying: Replaying, name: str
) -> None:
    replaying.daemon.call("term_spawn", name="t")
    id_ = replaying.run(name)
    replaying.has_question()
    # A person who was about to answer is refused, and the question is not shown any more.
    titles = [each["title"] for each in replaying.daemon.call("request_list")["requests"]]
    assert not [each for each in titles if "Late?" in each or "Both?" in each]
    begun = [position for position, changes in replaying.journal(id_) if "began" in changes]
    ended = [position for position, changes in replaying.journal(id_) if "end" in changes]
    assert set(begun) - set(ended) == {begun[-1]}, "only the last question is open"
    effects = replaying.effects
    replaying.kill()
    replaying.runs(id_, 2)
    replaying.answer(replaying.has_question())
    found = replaying.result(id_)
    assert replaying.effects == effects
    if name == "leaves":
        assert all(each.endswith(" left") for each in found), found
    else:
        assert len(found) == 7, found
        assert found[0] == "ask_human did not end within 0.3 seconds"


def test_an_answer_to_a_question_whose_time_is_up_is_refused(replaying: Replaying) -> None:
    replaying.plugin(
        "late",
        "from aegis import workflow\n"
        "@workflow\n"
        "async def late(engine):\n"
        # Long enough to be seen: after the resume the answer has to come in time.
        "    await engine.ask_human('Late?', timeout=5)\n",
    )
    replaying.call("workflow_trust")
    id_ = replaying.run("late")
    request = replaying.has_question("Late?")
    ended = replaying.ends(id_, "failed")
    assert ended["error"] == "TimedOut: ask_human did not end within 5 seconds"
    reply = replaying.answer(request)
    assert reply["outcome"] == "withdrawn"
    assert "its workflow does not wait for the answer any longer" in reply["text"]
    # A person continues it: the question is asked again, with all its time.
    replaying.reopen("workflow_resume", id_)
    replaying.answer(replaying.has_question("Late?"))
    replaying.ends(id_)


def test_values_that_json_cannot_carry_are_carried_exactly(replaying: Replaying) -> None:
    id_ = replaying.run("values")
    replaying.has_question()
    replaying.kill()
    replaying.runs(id_, 2)
    replaying.answer(replaying.has_question())
    shown, text = replaying.result(id_)
    assert "caf\\udce9.txt" in shown
    assert text == "x"
    assert "caf\\udce9.txt" in replaying.status(id_)["log"].replace("\\\\", "\\")


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("nan", "has the number nan"),
        ("set", "has a value of type set"),
        ("path", "has a value of type PosixPath"),
        ("enum", "has a value of type Colour"),
        ("loop", "is nested more than 100 deep, or contains itself"),
        ("digits", "is not JSON: Exceeds the limit"),
    ],
)
def test_a_value_that_cannot_be_kept_exactly_is_refused(
    replaying: Replaying, what: str, problem: str
) -> None:
    ended = replaying.ends(replaying.run("refused", what=what), "failed")
    assert ended["error"].startswith("StepFailed: step 's': ValueError: the result of step 's'")
    assert problem in ended["error"]


def test_arguments_that_no_text_can_carry_are_refused(replaying: Replaying) -> None:
    with pytest.raises(CommandFailed, match=r"Unicode|surrogate"):
        replaying.run("refused", what="caf\udce9")


def test_a_changed_workflow_ends_whatever_its_code_catches(replaying: Replaying) -> None:
    id_ = replaying.run("swallows")
    replaying.has_question("Release?")
    replaying.edit("Deploy?")
    replaying.kill()
    ended = replaying.ends(id_, "failed")
    assert ended["error"].startswith("WorkflowChanged: call 1 is ask_human('Deploy?'")
    assert set(replaying.effects) <= {"deploy", "caught all"}
    assert ended["result"] is None
    # The journal is whole: with the code restored, a person continues it.
    replaying.edit()
    replaying.reopen("workflow_resume", id_)
    replaying.answer(replaying.has_question("Release?"))
    assert replaying.result(id_) == "yes"
    assert {"bash", "rollback"} <= {*replaying.effects}


def test_time_passes_for_a_function_that_never_waits_for_the_engine(replaying: Replaying) -> None:
    replaying.plugin(
        "spins",
        "import time, trio\n"
        "from aegis import workflow\n"
        "@workflow\n"
        "async def spins(engine):\n"
        "    done = []\n"
        "    async def waits():\n"
        "        while not done:\n"
        "            await trio.sleep(0)\n"
        "    async def ends():\n"
        "        done.append((await engine.bash('echo x')).stdout)\n"
        "    await engine.parallel([waits, ends])\n"
        "    end = trio.current_time() + 0.5\n"
        "    while trio.current_time() < end:\n"
        "        await trio.sleep(0)\n"
        "    with trio.move_on_after(0.3):\n"
        "        while True:\n"
        "            await trio.sleep(0)\n"
        "    time.sleep(6)\n"  # longer than the limit behind it, in which a command has to end
        "    with trio.move_on_after(5) as scope:\n"
        "        await engine.bash('true')\n"
        "    return [done, scope.cancelled_caught]\n",
    )
    replaying.call("workflow_trust")
    assert replaying.result(replaying.run("spins")) == [["x\n"], False]
