"""A person continues a conversation of a real agent in its own interface, offline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aegis.client.line import CommandFailed
from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.team import Team, new_team
from tests.agents_real.tui.agents import TUIS, Tui
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]
TUI = TUIS["claude"]

TYPE_AGAIN_S = 15.0


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    try:
        with new_team(tmp_path, [CLAUDE], {"asks": {"provider": "claude"}}) as made:
            TUI.prepare(made.daemon.home, made.daemon.root)
            yield made
    except NotInstalled as reason:
        pytest.skip(str(reason))


class Person:
    """A person at the terminal of a take-over."""

    def __init__(self, team: Team, handle: str, tui: Tui = TUI, shows: str = TUI.ready) -> None:
        self.team, self.tui = team, tui
        taken = team.call("agent_takeover", handle=handle)["taken_over"]
        self.terminal: str = taken["terminal"]
        self.sees(shows)

    def screen(self) -> str:
        return "\n".join(self.team.call("term_screen", name=self.terminal)["lines"])

    def shows(self, text: str) -> bool:
        """Whether the screen shows a text, also in several lines."""
        return "".join(text.split()) in "".join(self.screen().split())

    def sees(self, text: str) -> None:
        try:
            until(lambda: self.shows(text), f"the screen shows {text!r}")
        except AssertionError as error:
            error.add_note(self.screen())
            raise

    def types(self, keys: str) -> None:
        self.team.call("term_keys", name=self.terminal, keys=keys)

    def says(self, text: str) -> None:
        """Send a message."""
        self.enters(text, lambda: text in str(self.team.model.requests()[-1]["messages"]))

    def enters(self, text: str, is_taken: Callable[[], bool]) -> None:
        """Enter a line."""
        self.presses(text, lambda: self.shows(text))
        self.presses("\r", is_taken)

    def approves(self) -> None:
        """Approve the question that is shown."""
        self.presses(self.tui.approve, lambda: self.tui.asks not in self.screen())

    def presses(self, key: str, is_done: Callable[[], bool]) -> None:
        """Press a key; again after a while, for a program ignores keys right after it has drawn."""
        pressed_at = -TYPE_AGAIN_S

        def is_taken() -> bool:
            nonlocal pressed_at
            if is_done():
                return True
            if time.monotonic() > pressed_at + TYPE_AGAIN_S:
                pressed_at = time.monotonic()
                with contextlib.suppress(CommandFailed):  # its terminal was closed meanwhile
                    self.types(key)
            return False

        until(is_taken, f"{key!r} is taken")


def has_our_url(team: Team) -> bool:
    """Whether the URL of a session is in the arguments or the environment of an agent's process."""
    for pid in team.pids():
        with contextlib.suppress(OSError):  # it has just ended
            for name in ("cmdline", "environ"):
                if b"/mcp/" in Path("/proc", str(pid), name).read_bytes():
                    return True
    return False


def test_a_person_takes_over_and_the_agent_continues(team: Team) -> None:
    handle = team.call("spawn", prompt="SAY the agent's answer", profile="asks")["handle"]
    until(lambda: team.outcomes(handle) == ["completed"], "the first turn has ended")
    before = team.info(handle)["conversation"]
    person = Person(team, handle)
    assert "the agent's answer" in person.screen()
    assert not has_our_url(team)
    person.says("BASH touch by-hand.txt")
    person.sees(TUI.asks)
    assert not (team.daemon.root / "by-hand.txt").exists()
    person.approves()
    until((team.daemon.root / "by-hand.txt").exists, "the command ran")
    files = team.daemon.root / ".aegis" / "state" / "agents"
    until(lambda: [*files.glob("*/takeover.mcp.json")] == [], "the file with the secret is gone")
    person.says("CALL aegis_meta {}")
    person.sees("Do you want to proceed")
    person.approves()
    until(lambda: "how_to_get" in str(team.model.requests()[-1]["messages"]), "it has our tools")
    team.call("handoff", target_handle=handle, context="SAY it waited", from_handle="pm")
    person.enters("/clear", lambda: "the agent's answer" not in person.screen())
    person.says("SAY after the clear")
    person.sees("● after the clear")

    info = team.call("agent_handback", handle=handle)
    assert info["taken_over"] is None
    assert info["conversation"] not in (None, before)
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "it continues with the message")
    said = [each["event"] for each in team.entries(handle, "event") if "source" in each]
    texts = [each["text"] for each in said if each["type"] == "user_message"]
    assert [*texts[:2], texts[-1]] == [
        "BASH touch by-hand.txt",
        "CALL aegis_meta {}",
        "SAY after the clear",
    ]
    assert "tool_use" in {each["type"] for each in said}
    assert "it waited" in team.text(handle, 2)
    [*_, asked] = [
        each for each in team.model.requests() if "SAY it waited" in str(each["messages"][-1])
    ]
    assert "after the clear" in str(asked["messages"])
    assert "BASH touch" not in str(asked["messages"])
    team.call("close", handle=handle)
    assert team.pids() == []


def test_a_person_leaves_and_a_kill_of_the_daemon_ends_a_take_over(team: Team) -> None:
    handle = team.call("spawn", prompt="SAY first", profile="asks")["handle"]
    until(lambda: team.outcomes(handle) == ["completed"], "the first turn has ended")
    person = Person(team, handle)
    person.says("SAY by hand")
    person.sees("● by hand")
    person.enters("/exit", lambda: team.info(handle)["taken_over"] is None)
    conversation = team.info(handle)["conversation"]
    person = Person(team, handle)
    person.says("SAY once more")
    person.sees("● once more")
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    team.call("handoff", target_handle=handle, context="SAY last", from_handle="pm")
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "it continues")
    assert team.info(handle)["conversation"] == conversation
    [*_, asked] = [
        each for each in team.model.requests() if "SAY last" in str(each["messages"][-1])
    ]
    assert all(each in str(asked["messages"]) for each in ("by hand", "once more"))
    team.call("close", handle=handle)
    assert team.pids() == []


OTHERS_TUI = {"claude-agent-acp": "claude"}
NEW = {"claude-agent-acp": "/clear"}
"""The commands that begin another conversation; ``/new`` for others."""


@pytest.mark.parametrize("leaves", [False, True], ids=["handed back", "left"])
def test_a_person_takes_over_another_agent(other: Cli, tmp_path: Path, leaves: bool) -> None:
    try:
        clis = [other, CLAUDE] if other.name == "claude-agent-acp" else [other]
        with new_team(tmp_path, clis, {"asks": {"provider": other.name}}) as team:
            handle = team.call("spawn", prompt="SAY the agent's answer", profile="asks")["handle"]
            until(lambda: team.outcomes(handle) == ["completed"], "the first turn has ended")
            if other.name == "gemini":
                refusal = str(team.daemon.refusal("agent_takeover", handle=handle))
                assert "a conversation of gemini cannot continue in its own terminal" in refusal
                return
            tui = TUIS[OTHERS_TUI.get(other.name, other.name)]
            tui.prepare(team.daemon.home, team.daemon.root)
            check_take_over(other, tui, team, handle, leaves=leaves)
            team.call("close", handle=handle)
            assert team.pids() == []
    except NotInstalled as reason:
        pytest.skip(str(reason))


def check_take_over(other: Cli, tui: Tui, team: Team, handle: str, *, leaves: bool) -> None:
    before = team.info(handle)["conversation"]
    person = Person(team, handle, tui, "the agent's answer")
    assert not has_our_url(team)
    person.says("SAY by hand")
    person.sees("• by hand" if other.name in ("codex", "kimi") else "by hand")
    person.says(other.asking.format(file="by-hand.txt"))
    person.sees(tui.asks)
    assert not (team.daemon.root / "by-hand.txt").exists()
    person.approves()
    until((team.daemon.root / "by-hand.txt").exists, "the command ran")
    files = team.daemon.root / ".aegis" / "state" / "agents"
    until(lambda: [*files.glob("*/takeover.mcp.json")] == [], "the file with the secret is gone")
    team.call("handoff", target_handle=handle, context="SAY it waited", from_handle="pm")
    if leaves:
        person.enters("/exit", lambda: team.info(handle)["taken_over"] is None)
        assert team.info(handle)["conversation"] == before
    else:
        new = NEW.get(other.name, "/new")
        person.enters(new, lambda: "Session:" in person.screen() or not person.shows("by-hand"))
        person.says("SAY after the new one")
        until(lambda: person.screen().count("after the new one") > 1, "it answers")
        info = team.call("agent_handback", handle=handle)
        assert info["taken_over"] is None
        assert info["conversation"] not in (None, before)
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "it continues with the message")
    said = [each["event"] for each in team.entries(handle, "event") if "source" in each]
    texts = [each["text"] for each in said if each["type"] == "user_message"]
    texts = [each for each in texts if each != "/clear"]
    assert texts[:2] == ["SAY by hand", other.asking.format(file="by-hand.txt")]
    assert len(texts) == (2 if leaves else 3)
    assert {"assistant_text", "tool_use", "tool_result"} <= {each["type"] for each in said}
    assert "it waited" in team.text(handle, 2)
    [*_, asked] = [
        each for each in team.model.requests() if "SAY it waited" in str(each["messages"][-1])
    ]
    assert ("by hand" in str(asked["messages"])) == leaves
    assert ("after the new one" in str(asked["messages"])) != leaves
