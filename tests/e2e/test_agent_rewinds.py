"""A person sets the files of an agent back to before a turn; those of others are left alone."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.client.line import CommandFailed, ConnectionLost
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.e2e.test_peer_identity import outcome, program
from tests.e2e.window import window
from tests.resources.waiting import until

pytestmark = pytest.mark.real

START = ("--port", "0", "--trust")


@attrs.frozen
class Files:
    """An agent that has changed ``own`` and ``shared`` in its first turn, before others did."""

    team: Team
    own: Path
    shared: Path

    def edit(self) -> str:
        self.own.write_text("first\n")
        self.shared.write_text("first\n")
        orders = f"EDIT {self.own}\nEDIT {self.shared}"
        handle = self.team.spawn(orders, handle="ann", profile="kept")
        self.team.has_outcomes(handle, "completed")
        self.are_known(handle, 2)
        self.is_idle(handle)
        return handle

    def are_known(self, handle: str, number: int) -> None:
        until(lambda: len(self.team.entries(handle, "edited")) >= number, "digests are stored")

    def is_idle(self, handle: str) -> None:
        until(lambda: self.team.info(handle)["state"] == "idle", "it is idle")

    def rewind(self, handle: str, **arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = self.team.call("agent_rewind", handle=handle, **arguments)
        return found

    def texts(self) -> tuple[str, str]:
        return self.own.read_text(), self.shared.read_text()

    @property
    def held(self) -> Path:
        """While it is there, the agent waits in a rewind after its first file."""
        return self.team.daemon.root.parent / f"{self.team.daemon.root.name}.held"

    @contextmanager
    def holding(self, handle: str) -> Iterator[list[Any]]:
        """Begin a rewind, and end it when the block does; yield its outcome."""
        self.held.touch()
        outcomes: list[Any] = []

        def run() -> None:
            try:
                outcomes.append(self.rewind(handle))
            except (CommandFailed, ConnectionLost) as error:
                outcomes.append(str(error))

        caller = threading.Thread(target=run)
        caller.start()
        try:
            until(lambda: self.own.read_text() == "first\n", "the agent sets files back")
            yield outcomes
        finally:
            self.held.unlink(missing_ok=True)
            caller.join()

    def aside(self) -> list[Path]:
        return [*(self.team.daemon.root / ".aegis" / "state" / "agents").glob("*/rewind")]


def files_of(daemon: DaemonProcess, faults: str = "") -> Files:
    kept = daemon.root.parent / f"{daemon.root.name}.files"
    held = daemon.root.parent / f"{daemon.root.name}.held"
    variables = {"STAND_IN_FILES": str(kept), "STAND_IN_REWIND_HELD": str(held)}
    command = [sys.executable, str(STAND_IN), "claude"]
    profile = {"provider": "claude", "permission": "write", "command": command, "env": variables}
    acp = {"provider": "acp", "permission": "full", "command": [*command[:2], "acp"]}
    team = Team(daemon, faults, more={"kept": profile, "acp": acp})
    return Files(team, daemon.root / "own.txt", daemon.root / "shared.txt")


@pytest.fixture
def files(own_daemon: DaemonProcess) -> Iterator[Files]:
    yield files_of(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_files_are_set_back_and_those_of_others_are_left(files: Files) -> None:
    handle = files.edit()
    files.shared.write_text("a person's\n")
    wanted = {"files": [str(files.own)], "left": [str(files.shared)], "unable": [], "turn": 1}
    dry = files.rewind(handle, dry_run=True)
    assert dry == {"handle": handle, "is_done": False, **wanted}
    assert files.texts() == ("first\nedited\n", "a person's\n")
    assert files.rewind(handle) == {"handle": handle, "is_done": True, **wanted}
    assert files.texts() == ("first\n", "a person's\n")
    assert files.aside() == []
    [entry] = files.team.entries(handle, "rewound")
    assert (entry["files"], entry["left"]) == ([str(files.own)], [str(files.shared)])
    shown = files.team.daemon.cli("agent", "read", handle).stdout
    assert "── files set back to before turn 1 by human" in shown
    assert f"      set back: {files.own}\n" in shown
    assert f"      left, since changed by others: {files.shared}\n" in shown
    exported = files.team.daemon.cli("agent", "export", handle).stdout
    assert "Files set back to before turn 1 by human" in exported
    plain = exported.replace("\\", "")
    assert f"- set back: {files.own}\n- left, since changed by others: {files.shared}\n" in plain
    lines = files.team.daemon.cli(
        "agent", "export", "--format", "jsonl", handle
    ).stdout.splitlines()
    [line] = [each for each in map(json.loads, lines) if each["kind"] == "rewound"]
    assert (line["fields"]["files"], line["fields"]["left"]) == (entry["files"], entry["left"])
    files.team.send(handle, "SAY on")
    files.team.has_outcomes(handle, "completed", "completed")


def test_a_turn_in_the_middle_is_rewound_to(files: Files) -> None:
    handle = files.edit()
    files.team.send(handle, f"EDIT {files.own}")
    files.team.has_outcomes(handle, "completed", "completed")
    files.are_known(handle, 3)
    files.is_idle(handle)
    assert files.rewind(handle, turn=2)["files"] == [str(files.own)]
    assert files.texts() == ("first\nedited\n", "first\nedited\n")
    # What a rewind has set back is the agent's own.
    assert files.rewind(handle, turn=1)["files"] == [str(files.own), str(files.shared)]
    assert files.texts() == ("first\n", "first\n")


def test_messages_wait_for_the_end_and_all_else_is_answered(files: Files) -> None:
    team, handle = files.team, files.edit()
    files.shared.write_text("a person's\n")
    with files.holding(handle) as outcomes:
        team.send(handle, "SAY later")
        until(lambda: team.info(handle)["waiting"] == 1, "the message waits")
        info = team.info(handle)
        assert (info["state"], info["turn"]) == ("idle", 1)
        assert info["reason"] == "its files are being set back to before turn 1"
        assert team.call("interrupt", handle=handle)["waiting"] == 1
        again = team.daemon.refusal("agent_rewind", handle=handle, dry_run=True)
        assert "are being set back to before turn 1: wait for the end of that" in str(again)
        assert outcomes == []
    [done] = outcomes
    assert (done["files"], done["left"]) == ([str(files.own)], [str(files.shared)])
    team.has_outcomes(handle, "completed", "completed")
    assert team.texts(handle)[-1] == "later"
    kinds = [
        each["kind"]
        for each in team.daemon.look("session_read", handle=handle, last_n=99)["result"]
    ]
    opened = [at for at, each in enumerate(kinds) if each == "turn_opened"]
    assert kinds.index("rewinding") < kinds.index("rewound") < opened[1]
    assert team.info(handle)["reason"] == ""
    assert files.texts() == ("first\n", "a person's\n")


@pytest.mark.parametrize("how", ["close", "agent_restart"])
def test_an_end_of_the_process_meanwhile_undoes_it(files: Files, how: str) -> None:
    team, handle = files.team, files.edit()
    files.shared.write_text("a person's\n")
    with files.holding(handle) as outcomes:
        team.send(handle, "SAY later")
        team.call(how, handle=handle)
        until(lambda: bool(outcomes), "it has ended")
    [reason] = outcomes
    kept = reason.partition(f"ended before it answered; {str(files.own)!r} was changed meanwhile: ")
    assert Path(kept[2].split("'")[1]).read_text() == "first\n"
    assert files.texts() == ("first\nedited\n", "a person's\n")
    assert files.aside() == []
    if how == "close":
        assert team.info(handle)["state"] == "closed"
    else:
        team.has_outcomes(handle, "completed", "completed")
        files.is_idle(handle)
        assert files.rewind(handle, turn=1)["files"] == [str(files.own)]


def test_a_take_over_waits_for_its_end(files: Files) -> None:
    team, handle = files.team, files.edit()
    takers: list[Any] = []
    with files.holding(handle) as outcomes:
        call = partial(team.call, "agent_takeover", handle=handle)
        taker = threading.Thread(target=lambda: takers.append(call()))
        taker.start()
        team.call("agent_show", handle=handle)
        assert takers == []
    assert outcomes[0]["is_done"]
    taker.join()
    assert takers[0]["taken_over"]["terminal"]
    refusal = str(team.daemon.refusal("agent_rewind", handle=handle))
    assert f"agent rewind: a person has taken over '{handle}'" in refusal
    assert f"agent handback {handle}" in refusal
    team.call("agent_handback", handle=handle)


def test_the_command_line_without_a_window_needs_yes(files: Files) -> None:
    handle = files.edit()
    cli = files.team.daemon.cli
    refused = cli("agent", "rewind", handle)
    assert refused.returncode == 1
    assert "without a window, --yes is needed" in refused.stderr
    assert "not undone: what its shell commands did, and the conversation" in refused.stderr
    assert f"to set back  {files.own}" in refused.stdout
    assert files.texts() == ("first\nedited\n",) * 2
    done = cli("agent", "rewind", "--yes", "--to", "1", handle)
    assert done.returncode == 0, done.stderr
    assert f"set back  {files.own}" in done.stdout
    assert f"{handle} does not know of it: say so in your next message" in done.stderr
    assert files.texts() == ("first\n",) * 2
    again = cli("agent", "rewind", "--yes", handle)
    assert again.returncode == 1
    assert "nothing to set back to before turn 1" in again.stderr


@pytest.mark.parametrize("answer", ["y", "", "n"])
def test_a_person_in_a_window_is_asked_after_what_cannot_be_undone(
    files: Files, answer: str
) -> None:
    handle = files.edit()
    files.shared.write_text("a person's\n")
    with window(files.team.daemon, "agent", "rewind", handle, cols=200) as asked:
        asked.wait_for(f"to set back  {files.own}".encode())
        asked.wait_for(f"left         {files.shared}".encode())
        asked.wait_for(b"left: changed since by others, or by a shell command")
        asked.wait_for(b"not undone: what its shell commands did, and the conversation")
        asked.wait_for(b"Set this file back to before turn 1? [y/N] ")
        assert files.texts() == ("first\nedited\n", "a person's\n")
        asked.press(f"{answer}\r".encode())
        if answer == "y":
            asked.wait_for(f"set back  {files.own}".encode())
            asked.wait_for(b"does not know of it")
        else:
            asked.wait_for(b"nothing was changed")
        assert asked.wait_exit() == (answer != "y")
    is_done = answer == "y"
    assert files.texts() == ("first\n" if is_done else "first\nedited\n", "a person's\n")


def test_it_is_refused_during_a_turn_and_for_turns_that_are_not_known(files: Files) -> None:
    team, handle = files.team, files.edit()
    refusal = team.daemon.refusal
    assert f"'{handle}' has had 1 turns, no 2" in str(
        refusal("agent_rewind", handle=handle, turn=2)
    )
    other = team.spawn(handle="eve", profile="writes")
    assert "'eve' has had no turn yet" in str(refusal("agent_rewind", handle=other))
    team.send(other, "HANG")
    team.is_in(other, "working")
    shown = str(refusal("agent_rewind", handle=other))
    assert "'eve' is not idle: wait for the end of its turn with agent wait eve" in shown
    # A process that does not know the turn: of another conversation, or without its files.
    team.call("agent_restart", handle=other)
    team.has_outcomes(other, "cancelled")
    files.is_idle(other)
    shown = str(refusal("agent_rewind", handle=other))
    assert "it keeps files for the turns of its current conversation only" in shown
    fork = team.call("agent_fork", handle=handle)["handle"]
    assert "has had no turn yet" in str(refusal("agent_rewind", handle=fork))


def test_other_agents_and_terminal_agents_are_refused_in_a_sentence(files: Files) -> None:
    team = files.team
    handle = team.spawn("SAY on", handle="gem", profile="acp")
    team.has_outcomes(handle, "completed")
    shown = str(team.daemon.refusal("agent_rewind", handle=handle))
    assert "acp cannot set files back to an earlier turn; only Claude Code can" in shown
    assert "agent diff gem" in shown
    team.call("agent_launch", cmd="bash", handle="shell")
    shown = str(team.daemon.refusal("agent_rewind", handle="shell"))
    assert "'shell' is a terminal agent" in shown


def test_only_a_person_rewinds(files: Files) -> None:
    team, handle = files.team, files.edit()
    eve = team.spawn(handle="eve", profile="all")
    refusal = team.daemon.refusal("agent_rewind", handle=handle, from_handle=eve)
    assert "is for a person only" in str(refusal)
    by_shell = program(team.daemon, "agent", "rewind", handle)
    assert "for the operator only" in outcome(team, eve, by_shell)


def test_a_resumed_process_rewinds_too(files: Files) -> None:
    handle = files.edit()
    files.shared.write_text("a person's\n")
    files.team.daemon.kill()
    files.team.daemon.start(*START)
    refusal = files.team.daemon.refusal("agent_rewind", handle=handle)
    assert "does not run" in str(refusal)
    files.team.call("agent_restart", handle=handle)
    files.is_idle(handle)
    assert files.rewind(handle)["left"] == [str(files.shared)]
    assert files.texts() == ("first\n", "a person's\n")


def is_undone(files: Files) -> None:
    """The next start has put all files back."""
    files.team.info("ann")
    until(lambda: len(files.team.entries("ann", "rewound")) == 1, "its end is stored")
    until(lambda: not files.aside(), "the copies are deleted")
    assert files.texts() == ("first\nedited\n", "a person's\n")
    [entry] = files.team.entries("ann", "rewound")
    assert (entry["reason"], entry["files"]) == ("it was cut short", [])


POINTS = [f"rewind.{step}.before" for step in ("keep", "agent", "back", "end")]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_step_undoes_it(own_daemon: DaemonProcess, point: str) -> None:
    files = files_of(own_daemon, faults=f"{point}@1=kill")
    handle = files.edit()
    files.shared.write_text("a person's\n")
    with pytest.raises(ConnectionLost):
        files.rewind(handle)
    own_daemon.wait_stopped()
    own_daemon.start(*START)
    is_undone(files)
    files.team.call("agent_restart", handle=handle)
    files.is_idle(handle)
    assert files.rewind(handle)["left"] == [str(files.shared)]
    assert files.texts() == ("first\n", "a person's\n")
    own_daemon.stop()


def test_a_kill_while_the_agent_writes_undoes_it_and_the_message_is_delivered(
    own_daemon: DaemonProcess,
) -> None:
    files = files_of(own_daemon)
    handle = files.edit()
    files.shared.write_text("a person's\n")
    with files.holding(handle):
        files.team.send(handle, "SAY later")
        own_daemon.kill()
    own_daemon.start(*START)
    is_undone(files)
    files.team.has_outcomes(handle, "completed", "completed")
    own_daemon.stop()


def test_a_file_that_was_replaced_after_a_kill_is_left_alone_and_named(
    own_daemon: DaemonProcess,
) -> None:
    files = files_of(own_daemon, faults="rewind.back.before@1=kill")
    handle = files.edit()
    files.shared.write_text("a person's\n")
    with pytest.raises(ConnectionLost):
        files.rewind(handle)
    own_daemon.wait_stopped()
    files.shared.unlink()
    files.shared.mkdir()
    own_daemon.start(*START)
    files.team.info(handle)
    until(lambda: len(files.team.entries(handle, "rewound")) == 1, "its end is stored")
    [entry] = files.team.entries(handle, "rewound")
    [named] = entry["unable"]
    head = f"{str(files.shared)!r} cannot be put back (it is no regular file): what it held is in "
    assert named.startswith(head)
    assert Path(named.removeprefix(head).strip("'")).read_text() == "a person's\n"
    assert files.own.read_text() == "first\nedited\n"
    assert files.shared.is_dir()
    assert "cannot be put back" in own_daemon.cli("agent", "read", handle).stdout
    own_daemon.stop()
