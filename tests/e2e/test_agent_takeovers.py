"""A person continues the conversation of an agent in its own interface, and hands it back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.client.line import CommandFailed, ConnectionLost
from tests.e2e.harness import STOP_WAS_SLOW, DaemonProcess, command_of
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.e2e.test_peer_identity import outcome, program
from tests.e2e.window import DETACH, window
from tests.resources.waiting import until

pytestmark = pytest.mark.real

START = ("--port", "0", "--trust")


@attrs.frozen
class Shared:
    """A team whose agents log their lives, and the terminal of a take-over."""

    team: Team
    log: Path

    def spawn(self) -> str:
        handle = self.team.spawn("SAY before", handle="ann", profile="held")
        self.team.has_outcomes(handle, "completed")
        return handle

    def take(self, handle: str, **arguments: object) -> str:
        info = self.team.call("agent_takeover", handle=handle, **arguments)
        terminal: str = info["taken_over"]["terminal"]
        self.shows(terminal, "resumed ")
        return terminal

    def output(self, terminal: str) -> str:
        return "\n".join(self.team.call("term_screen", name=terminal)["lines"])

    def shows(self, terminal: str, text: str) -> None:
        until(lambda: text in self.output(terminal), f"{terminal} shows {text}")

    def types(self, terminal: str, text: str, shows: str = "") -> None:
        self.team.call("term_keys", name=terminal, keys=f"{text}\r")
        if shows:
            self.shows(terminal, shows)

    def program(self) -> int:
        """The process of the program, once no child that it just began has its words too."""

        def found() -> list[int]:
            return [each for each in agents_of(self.team.daemon) if "manual" in command_of(each)]

        until(lambda: len(found()) == 1, "it runs alone")
        return found()[0]

    def agents(self) -> list[int]:
        """The processes of agents, without their guards."""
        pids = agents_of(self.team.daemon)
        commands = ((each, command_of(each)) for each in pids)
        return [each for each, words in commands if words and "guard.py" not in words]

    def agent(self, *but: int) -> int:
        """The process of the only agent, apart from these."""
        until(lambda: len({*self.agents()} - {*but}) == 1, "one agent runs")
        [found] = {*self.agents()} - {*but}
        return found

    def is_handed_back(self, handle: str) -> None:
        until(lambda: self.team.info(handle)["taken_over"] is None, "it is handed back")

    def lives(self) -> list[dict[str, Any]]:
        lines = [json.loads(each) for each in self.log.read_text().splitlines()]
        return [each for each in lines if each["kind"] == "begun"]

    def had_one_owner(self) -> None:
        assert [each["beside"] for each in self.lives()] == [[]] * len(self.lives())

    def said(self, handle: str) -> list[str]:
        """What was said in take-overs, as it is in the transcript."""
        entries = [each for each in self.team.entries(handle, "event") if "source" in each]
        return [each["event"]["text"] for each in entries if each["event"]["type"] != "usage"]

    def tokens(self, handle: str) -> list[int]:
        """The tokens of a session so far: all of the input, the cached ones, the output."""
        usage = self.team.info(handle)["usage"]
        names = ("input_tokens", "cached_tokens", "output_tokens")
        return [usage[each] or 0 for each in names]


def shared_by(daemon: DaemonProcess, faults: str = "") -> Shared:
    log = daemon.root.parent / f"{daemon.root.name}.witness"
    variables = {"AGENT_WITNESS": str(log), "CLAUDE_CONFIG_DIR": f"{log}.claude"}
    command = [sys.executable, str(STAND_IN), "claude"]
    held = {"provider": "claude", "permission": "write", "command": command, "env": variables}
    return Shared(Team(daemon, faults, more={"held": held}), log)


@pytest.fixture
def shared(own_daemon: DaemonProcess) -> Iterator[Shared]:
    found = shared_by(own_daemon)
    yield found
    own_daemon.stop()
    assert agents_of(own_daemon) == []
    found.had_one_owner()


def test_a_person_takes_over_and_hands_back(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    before = team.info(handle)["conversation"]
    terminal = shared.take(handle)
    assert terminal == "takeover-ann"
    shared.shows(terminal, f"resumed {before}")
    shared.types(terminal, "hello", "heard hello")
    info = team.info(handle)
    assert (info["state"], info["taken_over"]["terminal"]) == ("working", terminal)
    receipt = team.call("handoff", target_handle=handle, context="SAY later", from_handle="pm")
    assert receipt["status"] == "queued"
    assert "waits until it is handed back" in receipt["notice"]
    assert "taken over" in team.daemon.cli("agent", "list").stdout
    waited = team.daemon.cli("agent", "wait", handle, "--timeout", "0.1")
    held = f"↳ ann: a person has taken it over, in terminal {terminal}; agent handback ann ends"
    assert (waited.returncode, waited.stderr[: len(held)]) == (124, held)
    shared.types(terminal, "/exit")
    team.has_outcomes(handle, "completed", "completed")
    assert shared.said(handle) == ["hello", "heard hello"]
    assert team.info(handle)["conversation"] == before
    assert [each["resumes"] for each in shared.lives()] == [None, before, before]
    assert terminal not in {each["name"] for each in team.call("term_list")["result"]}
    shown = team.daemon.cli("agent", "read", handle).stdout
    assert "── taken over by human" in shown
    assert "> hello\n" in shown
    assert "── handed back" in shown


def test_the_tokens_of_a_take_over_count_once_also_after_a_kill(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    before = shared.tokens(handle)

    def spent() -> list[int]:
        return [now - then for now, then in zip(shared.tokens(handle), before, strict=True)]

    terminal = shared.take(handle)
    shared.types(terminal, "one", "heard one")
    shared.types(terminal, "/clear")
    shared.types(terminal, "two", "heard two")
    team.call("agent_handback", handle=handle)
    assert spent() == [240, 40, 18]
    shared.types(shared.take(handle), "three", "heard three")
    team.daemon.kill()
    until(lambda: agents_of(team.daemon) == [], "the guards have ended all")
    team.daemon.start(*START)
    shared.is_handed_back(handle)
    assert spent() == [360, 60, 29]


def test_another_conversation_is_the_agents_from_then_on(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    before = team.info(handle)["conversation"]
    terminal = shared.take(handle)
    shared.types(terminal, "first", "heard first")
    shared.types(terminal, "/clear")
    shared.types(terminal, "second", "heard second")
    info = team.call("agent_handback", handle=handle)
    assert info["taken_over"] is None
    assert info["conversation"] != before
    assert shared.said(handle) == ["first", "heard first", "second", "heard second"]
    team.send(handle, "SAY on")
    team.has_outcomes(handle, "completed", "completed")
    assert shared.lives()[-1]["resumes"] == info["conversation"]
    shared.types(shared.take(handle), "/clear")  # one without a message is no conversation
    assert team.call("agent_handback", handle=handle)["conversation"] == info["conversation"]


def test_a_running_turn_is_waited_for_or_interrupted_or_it_is_called_off(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    with waiting_for_a_turn(shared, handle) as refused:
        team.call("agent_handback", handle=handle)
    assert "it was called off" in refused[0]
    assert team.outcomes(handle) == ["completed"]
    shared.take(handle, interrupt=True)
    assert team.outcomes(handle) == ["completed", "cancelled"]
    team.call("agent_handback", handle=handle)


@contextlib.contextmanager
def waiting_for_a_turn(shared: Shared, handle: str) -> Iterator[list[str]]:
    """A take-over waits for the end of a turn; yields why it was refused, once it was."""
    team, refused = shared.team, list[str]()
    team.send(handle, "HANG")
    team.is_in(handle, "working")

    def waits() -> None:
        refused.append(str(team.daemon.refusal("agent_takeover", handle=handle)))

    def is_waiting() -> bool:
        refusal = team.daemon.refusal("agent_rewind", handle=handle, turn=1)
        return "a person has taken over" in str(refusal)

    waiting = threading.Thread(target=waits)
    waiting.start()
    until(is_waiting, "it waits")
    yield refused
    waiting.join()


def test_a_close_ends_the_wait_for_a_take_over(shared: Shared) -> None:
    handle = shared.spawn()
    with waiting_for_a_turn(shared, handle) as refused:
        shared.team.call("close", handle=handle)
    assert "agent takeover: the session was closed" in refused[0]


SLOW = ",".join(f"ledger.sync.before[transcript.jsonl]@{at}=delay:1.0" for at in range(1, 60))
"""Each sync of a transcript takes a second."""


@pytest.mark.parametrize("order", ["agent_handback", "agent_takeover"])
def test_an_order_while_a_take_over_is_written_back_leaves_the_next_one_alone(
    own_daemon: DaemonProcess, order: str
) -> None:
    shared = shared_by(own_daemon, SLOW)
    team, handle = shared.team, shared.spawn()
    shared.types(shared.take(handle), "hello", "heard hello")
    os.kill(shared.program(), signal.SIGTERM)
    until(lambda: shared.said(handle) == ["hello", "heard hello"], "what was said is durable")
    # A hand-back can come too late.
    with contextlib.suppress(*[CommandFailed] * (order == "agent_handback")):
        team.call(order, handle=handle)
    shared.types(shared.take(handle), "again", "heard again")
    assert team.call("agent_handback", handle=handle)["taken_over"] is None
    assert shared.said(handle) == ["hello", "heard hello", "again", "heard again"]
    own_daemon.stop()
    shared.had_one_owner()


def test_a_take_over_does_not_end_in_the_conversation_of_another_session(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    before = team.info(handle)["conversation"]
    team.has_outcomes(team.spawn("SAY before", handle="bob", profile="held"), "completed")
    bobs = team.info("bob")["conversation"]
    terminal = shared.take(handle)
    shared.types(terminal, "hello", "heard hello")
    shared.types(terminal, f"/open {bobs}", "is open")
    shared.types(terminal, "hello bob", "heard hello bob")
    assert team.call("agent_handback", handle=handle)["conversation"] == before
    assert shared.said(handle) == ["hello", "heard hello"]
    [back] = team.entries(handle, "handed_back")
    assert f"the conversation {bobs} is that of the session 'bob'" in back["reason"]
    team.send(handle, "SAY on")
    team.has_outcomes(handle, "completed", "completed")
    assert shared.lives()[-1]["resumes"] == before


def test_only_a_person_takes_over_and_hands_back(shared: Shared) -> None:
    """Agents do not reach its terminal either: tests/attacks/test_hostile_agents.py."""
    team, handle = shared.team, shared.spawn()
    eve = team.spawn(handle="eve", profile="all")
    for command in ("agent_takeover", "agent_handback"):
        refusal = team.daemon.refusal(command, handle=handle, from_handle=eve)
        assert "is for a person only" in str(refusal)
        by_shell = program(team.daemon, *command.split("_"), handle)
        assert "for the operator only" in outcome(team, eve, by_shell)
    shared.take(handle)
    restart = team.daemon.refusal("agent_restart", handle=handle)
    assert "end that first with agent handback ann" in str(restart)
    file = team.daemon.root / "notes.txt"
    file.write_text("notes\n")
    sent = team.daemon.cli("agent", "send", "--file", str(file), handle, "read this")
    assert (sent.returncode, sent.stdout[:6]) == (0, "queued")
    assert "↳ a person has taken ann over: the message waits" in sent.stderr


@pytest.mark.parametrize("order", ["CHILD", "DEAF"])
def test_no_process_is_left_when_the_agent_continues(shared: Shared, order: str) -> None:
    team, handle = shared.team, shared.spawn()
    terminal = shared.take(handle)
    shared.types(terminal, order, "has a child" if order == "CHILD" else "is deaf")
    team.call("agent_handback", handle=handle)
    assert agents_of(team.daemon) == []
    team.send(handle, "SAY on")
    team.has_outcomes(handle, "completed", "completed")


@pytest.mark.parametrize("faults", ["", "ledger.sync.before[ledger.jsonl]@1=delay:9"])
def test_a_stop_of_the_daemon_leaves_no_process_of_it(
    own_daemon: DaemonProcess, faults: str
) -> None:
    # Where the disk is slow, the stop does not wait for the record of the program.
    shared = shared_by(own_daemon, faults)
    shared.types(shared.take(shared.spawn()), "CHILD", "has a child")
    own_daemon.stop()
    assert not faults or STOP_WAS_SLOW in own_daemon.log
    assert agents_of(own_daemon) == []


def test_a_close_ends_it_too(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    shared.types(shared.take(handle), "last words", "heard last words")
    team.call("close", handle=handle)
    assert agents_of(team.daemon) == []
    assert shared.said(handle) == ["last words", "heard last words"]
    team.call("agent_resume", handle=handle, prompt="SAY on")
    team.has_outcomes(handle, "completed", "completed")


def test_without_a_conversation_or_a_program_it_is_one_sentence(shared: Shared) -> None:
    team = shared.team
    team.spawn(handle="new", profile="held")
    refusal = team.daemon.refusal("agent_takeover", handle="new")
    assert "has no conversation yet" in str(refusal)
    refusal = team.daemon.refusal("agent_handback", handle="new")
    assert "nobody has taken over 'new'" in str(refusal)
    handle = shared.spawn()
    team.call("term_spawn", name="takeover-ann")
    refusal = team.daemon.refusal("agent_takeover", handle=handle)
    assert "there is a terminal 'takeover-ann' already" in str(refusal)
    shared.is_handed_back(handle)
    assert "takeover-ann" in {each["name"] for each in team.call("term_list")["result"]}


def test_the_secret_is_in_no_argument_and_its_file_goes(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    terminal = shared.take(handle)
    shared.shows(terminal, "with ['aegis'] 600")
    pid = shared.program()
    assert "/mcp/" not in command_of(pid)
    assert "/mcp/" not in Path(f"/proc/{pid}/environ").read_text()
    files = team.daemon.root / ".aegis" / "state" / "agents"
    assert "/mcp/" in "".join(each.read_text() for each in files.glob("*/takeover.mcp.json"))
    team.call("agent_handback", handle=handle)
    assert [*files.glob("*/takeover.mcp.json"), *files.glob("*/takeover.sh")] == []


POINTS = [
    f"takeover.{step}"
    for step in (
        *("open.before", "run.before", "run.after", "end.before", "read.before"),
        "back.before",
    )
]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_switch_leaves_one_owner(own_daemon: DaemonProcess, point: str) -> None:
    shared = shared_by(own_daemon, faults=f"{point}@1=kill")
    team, handle = shared.team, shared.spawn()
    before = team.info(handle)["conversation"]
    is_late = point.split(".")[1] in ("end", "read", "back")
    if is_late:
        terminal = shared.take(handle)
        shared.types(terminal, "CHILD", "has a child")
        shared.types(terminal, "hello", "heard hello")
        with pytest.raises(ConnectionLost):
            team.call("agent_handback", handle=handle)
    else:
        with pytest.raises(ConnectionLost):
            team.call("agent_takeover", handle=handle)
    own_daemon.wait_stopped()
    own_daemon.start(*START)
    team.send(handle, "SAY on")
    team.has_outcomes(handle, "completed", "completed")
    assert shared.said(handle) == (["hello", "heard hello"] if is_late else [])
    assert shared.lives()[-1]["resumes"] == before
    assert team.info(handle)["taken_over"] is None
    shared.types(shared.take(handle), "again", "heard again")
    team.call("agent_handback", handle=handle)
    assert shared.said(handle)[-2:] == ["again", "heard again"]
    own_daemon.stop()
    shared.had_one_owner()


@pytest.mark.parametrize("point", ["open.before", "run.before"])
def test_a_kill_before_a_second_one_does_not_bring_back_a_cleared_conversation(
    own_daemon: DaemonProcess, point: str
) -> None:
    """The file of the first one's starts was taken for one of the second."""
    shared = shared_by(own_daemon, faults=f"takeover.{point}@2=kill")
    team, handle = shared.team, shared.spawn()
    before = team.info(handle)["conversation"]
    shared.types(shared.take(handle), "hello", "heard hello")
    team.call("agent_handback", handle=handle)
    team.call("handoff", target_handle=handle, context="/clear")
    until(lambda: team.info(handle)["conversation"] != before, "it is cleared")
    cleared = team.info(handle)["conversation"]
    with pytest.raises(ConnectionLost):
        team.call("agent_takeover", handle=handle)
    own_daemon.wait_stopped()
    own_daemon.start(*START)
    shared.is_handed_back(handle)
    assert team.info(handle)["conversation"] == cleared
    own_daemon.stop()


def test_a_kill_of_the_daemon_in_a_take_over_loses_nothing_said(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    before = team.info(handle)["conversation"]
    terminal = shared.take(handle)
    shared.types(terminal, "DEAF", "is deaf")
    shared.types(terminal, "CHILD", "has a child")
    shared.types(terminal, "/clear")
    shared.types(terminal, "hello", "heard hello")
    team.daemon.kill()
    team.daemon.start(*START)
    shared.is_handed_back(handle)
    assert shared.said(handle) == ["hello", "heard hello"]
    assert team.info(handle)["conversation"] != before
    team.send(handle, "SAY on")
    team.has_outcomes(handle, "completed", "completed")


def test_a_kill_of_the_program_hands_back(shared: Shared) -> None:
    handle = shared.spawn()
    shared.types(shared.take(handle), "hello", "heard hello")
    pid = shared.program()
    os.kill(pid, signal.SIGKILL)
    shared.is_handed_back(handle)
    assert shared.said(handle) == ["hello", "heard hello"]


def test_the_page_is_right(shared: Shared) -> None:
    """Its commands are carried out as they are printed, without a window."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "take-over-an-agent.md"
    commands = re.findall(r"(?m)^\$ aegis-actors (.*)$", page.read_text())
    shared.spawn()
    printed = []
    for words in map(str.split, commands):
        done = shared.team.daemon.cli(*words)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout)
    assert printed[:2] == ["takeover-ann\n"] * 2
    assert "👤 taken over" in printed[2]
    assert "a person, in terminal takeover-ann, since 20" in printed[2]
    assert "taken over" not in printed[3]


def test_in_a_window_it_is_attached_until_the_person_leaves(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    with window(team.daemon, "agent", "takeover", handle) as attached:
        attached.wait_for(b"resumed ")
        shared.types("takeover-ann", "hello")
        attached.wait_for(b"heard hello")
        attached.press(DETACH)
        attached.wait_for(b"you still have the conversation")
        assert attached.wait_exit() == 0
    with window(team.daemon, "agent", "takeover", handle) as attached:
        attached.wait_for(b"heard hello")
        team.call("agent_handback", handle=handle)
        assert attached.wait_exit() == 0
        assert b"you still have" not in attached.seen
    shared.is_handed_back(handle)
    assert shared.said(handle) == ["hello", "heard hello"]


# Conversations that began elsewhere.

EVIL = "\x1b[2Jfirst words\x07"


def of_another_program(shared: Shared, id_: str, words: str, cwd: str | None = None) -> Path:
    """A conversation in the files of the agent's program."""
    root = str(shared.team.daemon.root)
    directory = Path(f"{shared.log}.claude/projects", re.sub(r"[^A-Za-z0-9]", "-", root))
    directory.mkdir(parents=True, exist_ok=True)
    message = {"role": "user", "content": words}
    line = {"type": "user", "message": message, "uuid": "u", "cwd": cwd or root, "gitBranch": "b"}
    file = directory / f"{id_}.jsonl"
    file.write_text("no json\n" + json.dumps(line) + "\n")
    return file


def holds(shared: Shared, id_: str, pid: int | None = None) -> Path:
    """The agent's own register says that a process, this one, has a conversation open."""
    pid = pid or os.getpid()
    began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    registry = Path(f"{shared.log}.claude/sessions")
    registry.mkdir(parents=True, exist_ok=True)
    file = registry / f"{pid}.json"
    file.write_text(json.dumps({"pid": pid, "sessionId": id_, "procStart": began}))
    return file


def test_an_agent_is_not_started_beside_another_process_with_its_conversation(
    shared: Shared,
) -> None:
    team, handle = shared.team, shared.spawn()
    conversation = team.info(handle)["conversation"]
    registered = holds(shared, conversation)
    team.call("agent_restart", handle=handle)
    team.is_in(handle, "error")
    held = f"is open in process {os.getpid()}, outside of this daemon: end that"
    assert held in team.info(handle)["reason"]
    for text in ("SAY one", "SAY two"):
        team.send(handle, text)
    until(lambda: team.info(handle)["waiting"] == 2, "both messages have come")

    def tries(kind: str) -> int:
        return len(team.entries(handle, kind))

    until(lambda: 2 < tries("started") == tries("ended"), "what they began has ended")
    team.is_in(handle, "error")
    assert len(shared.lives()) == 1
    registered.unlink()
    team.call("agent_restart", handle=handle)
    until(lambda: team.texts(handle)[-2:] == ["one", "two"], "both messages arrive")
    assert [each["resumes"] for each in shared.lives()] == [None, conversation]


def test_a_person_takes_over_no_conversation_that_another_process_has_open(shared: Shared) -> None:
    team, handle = shared.team, shared.spawn()
    conversation = team.info(handle)["conversation"]
    own = shared.agent()
    holds(shared, conversation, own)
    registered = holds(shared, conversation)
    held = (
        f"agent takeover: its conversation is open in process {os.getpid()}, outside of this "
        "daemon: end that, and then continue with agent takeover ann"
    )
    assert held in str(team.daemon.refusal("agent_takeover", handle=handle))
    assert team.info(handle)["state"] == "idle"
    team.call("agent_restart", handle=handle)
    team.is_in(handle, "error")
    assert held in str(team.daemon.refusal("agent_takeover", handle=handle))
    assert len(shared.lives()) == 1
    team.has_outcomes(team.spawn("SAY before", handle="bob", profile="held"), "completed")
    bobs = shared.agent()
    registered.unlink()
    registered = holds(shared, conversation, bobs)
    refusal = str(team.daemon.refusal("agent_takeover", handle=handle))
    assert f"is open in process {bobs} of the session 'bob': end that" in refusal
    registered.unlink()
    team.call("agent_restart", handle=handle)
    team.is_in(handle, "idle")
    own = shared.agent(bobs)
    registered = holds(shared, conversation, own)
    shared.take(handle)
    registered.unlink()
    team.call("agent_handback", handle=handle)


def test_another_process_that_opens_it_before_the_person_calls_the_take_over_off(
    shared: Shared,
) -> None:
    team, handle = shared.team, shared.spawn()
    conversation = team.info(handle)["conversation"]
    with waiting_for_a_turn(shared, handle) as refused:
        registered = holds(shared, conversation)
        team.call("interrupt", handle=handle)
        until(lambda: bool(refused), "the take-over is refused")
    held = f"agent takeover: its conversation is open in process {os.getpid()}, outside"
    assert held in refused[0]
    shared.is_handed_back(handle)
    registered.unlink()
    team.send(handle, "SAY on")
    team.has_outcomes(handle, "completed", "cancelled", "completed")
    assert [each["resumes"] for each in shared.lives()] == [None, conversation]


def test_a_conversation_that_began_elsewhere_is_listed_and_continued(shared: Shared) -> None:
    team = shared.team
    old, new, other = (f"{number:08}-0000-4000-8000-000000000000" for number in (1, 2, 3))
    os.utime(of_another_program(shared, old, EVIL), (1, 1))
    of_another_program(shared, new, "the newer one")
    of_another_program(shared, other, "elsewhere", cwd="/elsewhere")
    listed = team.call("agent_conversations", profile="held")
    assert [(each["id"], each["branch"]) for each in listed["result"]] == [(new, "b"), (old, "b")]
    shown = team.daemon.cli("agent", "conversations", "--profile", "held").stdout
    assert "the newer one" in shown
    assert "first words" in shown
    assert not {"\x1b", "\x07"} & set(shown)
    done = team.daemon.cli(
        *("agent", "launch", "held", "SAY on", "--conversation", old, "--handle", "ann")
    )
    assert (done.returncode, done.stdout) == (0, "ann\n")
    team.has_outcomes("ann", "completed")
    assert (shared.lives()[-1]["resumes"], team.info("ann")["conversation"]) == (old, old)
    refusal = team.daemon.refusal("agent_continue", profile="held", conversation=old)
    assert "is that of the session 'ann'" in str(refusal)
    team.call("agent_continue", profile="held", conversation=old, fork=True, prompt="SAY on")
    until(lambda: len(shared.lives()) == 2, "a copy is made")
    refusal = team.daemon.refusal("agent_continue", profile="held", conversation="../../x")
    assert "has no conversation '../../x'" in str(refusal)


def test_a_conversation_that_a_process_has_open_is_refused_by_its_name(shared: Shared) -> None:
    team, id_ = shared.team, "00000001-0000-4000-8000-000000000000"
    of_another_program(shared, id_, "open")
    registered = holds(shared, id_)
    [listed] = team.call("agent_conversations", profile="held")["result"]
    assert listed["holder"] == f"process {os.getpid()}"
    refusal = team.daemon.refusal("agent_continue", profile="held", conversation=id_)
    assert f"is open in process {os.getpid()}: end that first" in str(refusal)
    # The file of a process that was killed, whose pid is another's now.
    entry = json.loads(registered.read_text())
    registered.write_text(json.dumps(entry | {"procStart": "1"}))
    team.call("agent_continue", profile="held", conversation=id_, prompt="SAY on", handle="ann")
    team.has_outcomes("ann", "completed")
