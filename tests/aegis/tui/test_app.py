"""The interface by Textual's Pilot, in front of a daemon that is a few lists."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from textual import events
from textual._xterm_parser import XTermParser
from textual.pilot import Pilot
from textual.widgets import Input

from aegis.protocol.terminals import NeedsInput
from aegis.protocol.workflows import ParameterInfo, WorkflowDefinition, WorkflowList
from aegis.tui.app import AegisApp
from aegis.tui.dialogs.requests import RequestsDialog
from aegis.tui.model.requests import GUARD_S
from aegis.tui.panes.conversation import ConversationPane
from aegis.tui.panes.terminal import TerminalPane
from aegis.tui.raw_keys import Divider, RawKeys, RawMode, RawSwitched
from aegis.tui.widgets.input_bar import InputBar, LineInput, PasteInput
from aegis.tui.widgets.line_view import LineView
from tests.aegis.tui.examples import NOON_S, blocked, entry, event, record, request, workflow
from tests.aegis.tui.fake_daemon import FakeDaemon, link_to, until

IMAGES = Path(__file__).parents[3] / "docs/images"
UPDATES = "AEGIS_UPDATE_PICTURES" in os.environ

Play = Callable[["Stage"], Awaitable[None]]


class Stage:
    """The app, its daemon, and a person's hands."""

    def __init__(self, app: StillApp, pilot: Pilot[None], daemon: FakeDaemon) -> None:
        self.app, self.pilot, self.daemon = app, pilot, daemon

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if each == " " else each for each in text), "enter")

    async def shows(self, *texts: str) -> None:
        await until(lambda: all(each in self.text() for each in texts), f"{texts}:\n{self.text()}")

    async def hides(self, text: str) -> None:
        await until(lambda: text not in self.text(), f"no {text}:\n{self.text()}")

    async def shows_tab(self, key: str) -> None:
        await until(lambda: self.app.tabs.active == key, key)

    def text(self) -> str:
        """What the window shows, as text."""
        width, _ = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join(each.text[:width] for each in lines)


def play(
    work: Play,
    daemon: FakeDaemon | None = None,
    size: tuple[int, int] = (110, 30),
    *,
    shows_remarks: bool = False,
) -> None:
    """Run the app for a test."""
    daemon = daemon or FakeDaemon()

    async def run() -> None:
        app = StillApp("/nowhere", None, link_type=link_to(daemon))
        async with app.run_test(size=size, notifications=shows_remarks) as pilot:
            try:
                stage = Stage(app, pilot, daemon)
                count = len(daemon.infos) + len(daemon.agents)
                await until(lambda: len(app.tabs.keys) == count, "all tabs are there")
                await stage.pilot.pause()
                await work(stage)
            finally:
                await app.link.stop()

    asyncio.run(run())


class StillApp(AegisApp):
    """The app with a clock that shows noon, until a test moves it."""

    moved_s = 0.0
    remark = ""

    def show_remark(self, sentence: str) -> None:
        self.remark = sentence  # a test shows none
        super().show_remark(sentence)

    def now(self) -> float:
        return NOON_S + 65 + self.moved_s


@pytest.fixture(autouse=True)
def plain_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(RawMode, "is_on", False)
    monkeypatch.setattr(RawMode, "may_begin", False)
    monkeypatch.setattr("random.randrange", lambda _: 0)
    yield
    monkeypatch.undo()
    time.tzset()


def shop() -> FakeDaemon:
    """A daemon with a terminal that has a past, and an agent."""
    daemon = FakeDaemon()
    daemon.open_terminal(
        "build",
        record(0, "git status --short", stdout=" M shop/cart.py\n", duration_s=0.02),
        record(1, "pytest -q", writer="agent:ann", stdout="..F\n1 failed\n", exit=1),
        last_exit=1,
        last_cmd_at="2026-05-22T12:00:00Z",
    )
    daemon.set_agent("ann", state="working", tools=["Bash"])
    return daemon


def test_ctrl_e_opens_a_terminal_and_a_line_is_run() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("ctrl+e")
        await stage.shows("TERMINAL")
        await stage.type("build")
        await stage.shows_tab("term:build")
        await stage.shows("── live ──", "$", "RUN")
        await stage.type("echo hi")
        await until(lambda: ("run", ("build", "echo hi")) in stage.daemon.called)
        stage.daemon.start_command("build", "echo hi", 0)
        stage.daemon.print("build", "echo hi\r\n\x1b]133;C\x07hi\r\n")
        await stage.shows("🟢 term:build", "echo hi", "▎ hi")
        stage.daemon.end_command("build", record(0, "echo hi", stdout="hi\n", duration_s=0.5))
        await stage.shows("↳ exit 0 · 0.50s", "✅ term:build")
        await stage.press("up")
        assert stage.app.focused.value == "echo hi"  # type: ignore[union-attr]

    play(work)


def test_past_commands_are_blocks_above_the_rule_and_a_click_copies() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("pytest -q", "↳ exit 1 · 4.20s", "── live ──")
        shown = stage.text().split("\n")
        row = next(number for number, line in enumerate(shown) if "1 failed" in line)
        await stage.pilot.click(offset=(40, row))
        await until(lambda: stage.app.clipboard == "..F\n1 failed\n", "the output is copied")
        await stage.pilot.click(offset=(40, row - 2))
        await until(lambda: stage.app.clipboard == "pytest -q", "the command is copied")

    play(work, shop())


def test_raw_mode_shows_the_screen_and_types_what_is_pressed() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("── live ──")
        await stage.press("ctrl+k")
        await stage.shows("RAW")
        assert RawMode.is_on
        await stage.hides("── live ──")
        pane = stage.app.active
        assert isinstance(pane, TerminalPane)
        stage.daemon.print("build", "\x1b[?1h\x1b[?2004h")
        await until(lambda: pane.view.emulator.has_application_arrows, "the modes are taken")
        pane.view.type_raw(b"\x1b[A\x08")
        pane.view.paste("one\ntwo\x1b[201~")
        wanted = b"\x1bOA\x08\x1b[200~one\rtwo[201~\x1b[201~"
        await until(lambda: stage.daemon.output["build"].typed == wanted, "the keys are typed")
        await stage.press("f1")  # a dialog ends raw mode: keys belong to it
        await until(lambda: not RawMode.is_on, "raw mode is left")

    play(work, shop())


def test_what_others_open_appears_behind_the_shown_tab_with_dot_star_and_bell() -> None:
    async def work(stage: Stage) -> None:
        bells: list[None] = []
        stage.app.bell = lambda: bells.append(None)  # type: ignore[method-assign]
        await stage.press("alt+2")
        await stage.shows_tab("term:build")
        stage.daemon.open_terminal("logs")
        stage.daemon.set_agent("bob", state="working")
        await stage.shows("term:logs", "🟢 bob")
        stage.daemon.set_agent("bob", state="blocked", blocked=blocked("Write"))
        await stage.shows("🟡 bob*", "Write")
        await until(lambda: bool(bells), "the bell rings")
        assert stage.app.tabs.active == "term:build"
        stage.app.open_tab("agent:id-bob")
        await stage.shows_tab("agent:id-bob")
        await stage.hides("bob*")

    play(work, shop())


def test_a_conversation_streams_and_is_spoken_to_and_interrupted() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+1")
        await stage.shows_tab("agent:id-ann")
        feed = stage.daemon.transcripts["ann"]
        feed.put(entry("turn_opened", turn=1, text="> from agent:pm · …\nfix the cart\n"))
        feed.put(event("assistant_text", text="[bold]Looking", message="m"))
        feed.put(event("assistant_text", text=" at it.", message="m"))
        feed.put(event("tool_use", id="t", name="Bash", title="Run the tests"))
        feed.put(event("tool_result", id="t", text="1 failed"))
        await stage.shows("✉ from agent:pm", "fix the cart", "[bold]Looking at it.")
        await stage.shows("● Run the tests", "1 failed", "Esc interrupts")
        await stage.type("go on")
        await until(lambda: ("handoff", ("ann", "go on")) in stage.daemon.called)
        await stage.press("escape")
        await until(lambda: ("interrupt", "ann") in stage.daemon.called)

    play(work, shop())


def test_a_request_is_answered_with_one_key_but_not_at_once() -> None:
    async def work(stage: Stage) -> None:
        stage.daemon.ask(request())
        await stage.shows("🟡 1 F2")
        await stage.press("f2", "y", "y")
        await stage.shows("REQUEST 1 of 1", "ann wants to use Bash", "touch x")
        assert [each for each, _ in stage.daemon.called] == []
        stage.app.moved_s += GUARD_S + 0.1
        await stage.press("y")
        answer = ("answer", ("0" * 12, "d" * 64, "allow", "once", None))
        await until(lambda: answer in stage.daemon.called, "it is answered")
        await until(lambda: not isinstance(stage.app.screen, RequestsDialog), "it closes")

    play(work, shop())


def test_a_request_that_needs_a_person_needs_two_keys() -> None:
    async def work(stage: Stage) -> None:
        stage.daemon.ask(request(needs_person=True))
        await stage.shows("🟡 1 F2")
        await stage.press("f2")
        await stage.shows("REQUEST")
        stage.app.moved_s += 5
        await stage.press("y")
        await stage.shows("Enter allows it")
        await stage.press("x")
        await stage.press("y", "enter")
        await until(lambda: len(stage.daemon.called) == 1, "it is answered once")

    play(work, shop())


def test_a_question_is_answered_by_a_number_and_a_form_by_its_fields() -> None:
    question = {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]}
    form = {"schema": {"properties": {"count": {"type": "integer"}, "sure": {"type": "boolean"}}}}

    async def work(stage: Stage) -> None:
        stage.daemon.ask(request("a" * 12, kind="question", input=question))
        stage.daemon.ask(request("b" * 12, kind="elicitation", input=form))
        await stage.shows("🟡 2 F2")
        await stage.press("f2")
        await stage.shows("Which?", "2 B")
        stage.app.moved_s += 5
        await stage.press("2")
        await until(lambda: len(stage.daemon.called) == 1, "the question is answered")
        await stage.shows("REQUEST 1 of 1")
        stage.app.moved_s += 5
        await stage.press("enter")
        await stage.shows("count · Enter answers")
        await stage.type("3")
        await stage.shows("sure · Enter answers")
        await stage.type("yes")
        await until(lambda: len(stage.daemon.called) == 2, "the form is answered")
        values = [fields[4] for _, fields in stage.daemon.called]
        assert values == [{"Which?": "B"}, {"count": 3, "sure": True}]

    play(work, shop())


def test_an_agent_is_picked_and_a_failure_is_one_sentence() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("ctrl+t")
        await stage.shows("AGENT", "asks", "claude · ask")
        await stage.press("enter")
        await stage.shows_tab("agent:id-new")
        stage.app.report("terminal [b]x[/b] is busy")
        await until(lambda: len(stage.app._notifications) == 1, "it is shown")
        [notice] = stage.app._notifications
        assert (notice.message, notice.markup) == ("terminal [b]x[/b] is busy", False)

    play(work, shop())


def test_a_closed_tab_gives_way_and_its_subject_stays() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows_tab("term:build")
        await stage.press("ctrl+w")
        await until(lambda: stage.app.tabs.active != "term:build", "another tab is shown")
        assert "term:build" not in stage.app.tabs.keys
        assert stage.daemon.called == []

    play(work, shop())


def test_the_tab_of_a_closed_agent_goes_unless_it_was_looked_at_and_keeps_its_handle() -> None:
    async def work(stage: Stage) -> None:
        for handle in ("seen", "unseen"):
            stage.daemon.set_agent(handle, id=f"id-{handle}")
        await until(lambda: "agent:id-unseen" in stage.app.tabs.keys, "the tabs are open")
        stage.app.open_tab("agent:id-seen")
        await stage.shows_tab("agent:id-seen")
        for handle in ("seen", "unseen"):
            stage.daemon.set_agent(handle, id=f"id-{handle}", state="closed")
        await until(lambda: "agent:id-unseen" not in stage.app.tabs.keys, "its tab is closed")
        await stage.press("alt+1")
        await until(lambda: stage.app.tabs.active != "agent:id-seen", "another tab is shown")
        labels = {each.key: each for each in stage.app.tabs.labels(stage.app.world, NOON_S)}
        assert (labels["agent:id-seen"].title, labels["agent:id-seen"].dot) == ("seen", "✅")

    play(work, shop())


def test_a_pasted_text_of_several_lines_waits_for_enter() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("RUN")
        assert stage.app.focused is not None
        stage.app.focused.post_message(events.Paste("echo 1\necho 2\n"))
        await stage.shows("[2 lines pasted]")
        assert stage.daemon.called == []
        await stage.press("enter")
        await until(lambda: ("run", ("build", "echo 1\necho 2")) in stage.daemon.called)

    play(work, shop())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_paste_is_inserted_once_and_whole_into_every_input(end: str) -> None:
    async def work(stage: Stage) -> None:
        def line() -> Input:
            assert isinstance(stage.app.focused, Input)
            return stage.app.focused

        def has_dialog() -> bool:
            focused = stage.app.focused  # none, before the dialog has it
            return isinstance(focused, Input) and not isinstance(focused, LineInput)

        async def paste(*lines: str) -> None:
            stage.app.post_message(events.Paste(end.join(lines)))
            await stage.pilot.pause()

        await stage.press("alt+2")
        await stage.shows("RUN")
        await paste("echo hi")
        await until(lambda: line().value == "echo hi", "one line is there once")
        await paste("", "echo two", "echo three\u2028x", "")
        await stage.shows("echo hi[3 lines pasted]")
        await stage.press("enter")
        run = ("run", ("build", "echo hi\necho two\necho three\u2028x"))
        await until(lambda: run in stage.daemon.called, f"it is run: {stage.daemon.called}")
        await stage.press("up")
        await stage.shows("[3 lines pasted]")  # it is recalled whole too
        for key, kind in (("ctrl+e", PasteInput), ("ctrl+p", Input)):
            await stage.press(key)
            await until(has_dialog, "a dialog is shown")
            assert isinstance(line(), kind)
            await paste("one", "two")
            await until(lambda: line().value == "one two", "nothing is cut")
            await stage.press("escape")
            await until(lambda: len(stage.app.screen_stack) == 1, "it is closed")

    play(work, shop())


def test_a_timer_that_outlives_the_screens_of_an_app_that_ends_draws_nothing() -> None:
    stages = []

    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("── live ──")
        stages.append(stage)

    play(work, shop())
    [stage] = stages
    assert stage.app.screen_stack == []
    stage.app.tick()
    stage.app.draw()


def test_keys_of_one_read_act_one_after_another() -> None:
    async def work(stage: Stage) -> None:
        stage.daemon.may_spawn = trio.Event()
        for kind, text in Divider().feed("\x05new\recho 1\r\x0b\x1b[A\x0becho 2\r", 0.0):
            if kind == "toggle":
                RawMode.switch(not RawMode.is_on)
                stage.app.post_message(RawSwitched(RawMode.is_on))
            elif RawMode.is_on:
                stage.app.post_message(RawKeys(text.encode()))
            else:
                for each in XTermParser().feed(text):
                    stage.app.post_message(each)
        await until(lambda: ("spawn", "new") in stage.daemon.called, "the dialog has its name")
        stage.daemon.may_spawn.set()
        runs = [("run", ("new", "echo 1")), ("run", ("new", "echo 2"))]
        await until(lambda: [e for e in stage.daemon.called if e[0] == "run"] == runs, "all ran")
        await until(lambda: stage.daemon.output["new"].typed == b"\x1b[A", "the key is typed")

    play(work)


def test_a_key_waits_for_the_enter_before_it_on_a_slow_machine() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("── live ──")
        # The bar has the Enter only after that.
        stage.app.query_one(InputBar).call_later(asyncio.sleep, 1.3)
        for each in XTermParser().feed("echo 1\recho 2\r"):
            stage.app.post_message(each)
        runs = [("run", ("build", "echo 1")), ("run", ("build", "echo 2"))]
        await until(lambda: [e for e in stage.daemon.called if e[0] == "run"] == runs, "all ran")

    play(work, shop())


def test_a_line_is_typed_into_the_program_that_waits_and_a_secret_is_not_shown() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("── live ──")
        feed = stage.daemon.output["build"]
        stage.daemon.start_command("build", "sudo make", 2)
        await stage.shows("NEXT")
        stage.daemon.set_state("build", "running", NeedsInput(kind="secret", program="sudo"))
        await stage.shows("SECRET", "sudo asks for a secret")
        await stage.press(*"hunter2")
        stage.daemon.set_state("build", "running")  # it printed; what is typed is still a secret
        await stage.shows("•••••••")
        assert "hunter" not in stage.text()
        await stage.press("enter")
        await until(lambda: feed.typed == b"hunter2\r", "it is typed")
        await stage.shows("NEXT")
        stage.daemon.set_state("build", "running", NeedsInput(kind="input", program="make"))
        await stage.shows("ANSWER", "make waits for a line")
        await stage.press("enter")
        await stage.type("y")
        await until(lambda: feed.typed == b"hunter2\r\ry\r", "an empty line is an answer too")
        stage.daemon.set_state("build", "running", NeedsInput(kind="secret", program="sudo"))
        await stage.shows("SECRET")
        await stage.press(*"hunter2")
        stage.daemon.end_command("build", record(2, "sudo make"))
        await stage.shows("RUN", "↳ exit 0")  # what was typed unseen is dropped, never shown
        assert "hunter" not in stage.text()
        await stage.press("up")
        assert stage.app.focused.value == "sudo make"  # type: ignore[union-attr]
        assert [each for each in stage.daemon.called if each[0] == "run"] == []

    play(work, shop())


def test_queued_lines_are_shown_taken_back_and_held_if_the_program_asks() -> None:
    async def work(stage: Stage) -> None:
        def runs() -> list[Any]:
            return [text for name, (_, text) in stage.daemon.called if name == "run"]

        await stage.press("alt+2")
        await stage.shows("── live ──")
        stage.daemon.start_command("build", "make", 2)
        await stage.shows("NEXT")
        await stage.type("echo one")
        await stage.type("echo two")
        await stage.shows("⏳ 2 queued: echo one · echo two", "Up takes back")
        await stage.press("up")
        assert stage.app.focused.value == "echo two"  # type: ignore[union-attr]
        await stage.press("ctrl+u")
        assert runs() == []
        stage.daemon.end_command("build", record(2, "make"))
        await until(lambda: runs() == ["echo one"], "it runs after the command")
        stage.daemon.start_command("build", "make", 4)
        await stage.shows("NEXT")
        await stage.type("hunter2")
        stage.daemon.set_state("build", "running", NeedsInput(kind="secret", program="sudo"))
        await stage.shows("⏸ 1 held: •••")
        assert "hunter" not in stage.text()
        stage.daemon.end_command("build", record(4, "make"))
        await stage.shows("RUN", "1 held: hunter2", "Enter runs")
        assert runs() == ["echo one"]
        await stage.press("enter")
        await until(lambda: runs() == ["echo one", "hunter2"], "the person has decided")

    play(work, shop())


def test_a_line_entered_while_the_daemon_is_away_is_kept_and_runs_only_if_entered_again() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("RUN")
        stage.daemon.start_command("build", "make", 2)
        await stage.shows("NEXT")
        await stage.type("echo queued")
        stage.daemon.client.is_connected = False
        stage.app.on_connection(False)
        await stage.type("rm -rf build")
        await stage.shows("the daemon is away; the line was not sent", "1 held: echo queued")
        assert stage.app.focused.value == "rm -rf build"  # type: ignore[union-attr]
        stage.daemon.client.is_connected = True
        stage.daemon.end_command("build", record(2, "make", killed_by_restart=True))
        await stage.shows("RUN")
        assert stage.daemon.called == []
        await stage.press("enter")
        # Up takes a line back that has not begun to run.
        await until(lambda: len(stage.daemon.called) == 1, "the first one runs")
        await stage.press("up", "enter")
        await until(lambda: len(stage.daemon.called) == 2, "both were entered again")
        await stage.press("alt+1")
        stage.daemon.client.is_connected = False
        await stage.type("go on")
        assert stage.app.focused.value == "go on"  # type: ignore[union-attr]

    play(work, shop(), shows_remarks=True)


def test_what_is_typed_reaches_the_line_after_a_click_or_tab() -> None:
    async def work(stage: Stage) -> None:
        for number in (1, 2):
            await stage.press(f"alt+{number}")
            await stage.shows("SAY" if number == 1 else "↳ exit 1")
            await stage.press(*"ec")
            for row in (3, 12, 27, 28):
                await stage.pilot.click(offset=(60, row))
            await stage.press("tab", "tab", "shift+tab", *"ho")
            line = stage.app.focused
            assert isinstance(line, LineInput)
            assert line.value == "echo"

    play(work, shop())


def test_a_conversation_without_a_turn_says_so_until_there_is_one() -> None:
    daemon = FakeDaemon()
    daemon.set_agent("ann")

    async def work(stage: Stage) -> None:
        await stage.press("alt+1")
        await stage.shows("nothing was said yet")
        daemon.transcripts["ann"].put(entry("turn_opened", turn=1, text="hello"))
        await stage.shows("hello")
        assert "nothing was said yet" not in stage.text()

    play(work, daemon)


def test_tabs_that_have_no_room_are_marked_at_the_ends() -> None:
    daemon = FakeDaemon()
    for number in range(9):
        daemon.open_terminal(f"terminal{number}")

    async def work(stage: Stage) -> None:
        def bar() -> str:
            return stage.text().split("\n")[0].strip()

        await until(lambda: bar().endswith("▸"), "there are more at the right")
        assert "◂" not in bar()
        await stage.press("alt+9")
        await until(lambda: "terminal8" in bar(), "the last one is shown")
        assert bar().startswith("◂")
        assert "▸" not in bar()

    play(work, daemon, size=(80, 24))


def test_the_help_fits_on_80_by_24() -> None:
    async def work(stage: Stage) -> None:
        await stage.press("f1")
        await stage.shows("Ctrl-Q", "Ctrl-E", "🟢 works", "Alt-1 … 9")
        rows = [line for line in stage.text().split("\n") if line.strip()]
        assert rows[0].strip().startswith("╭")
        assert rows[-1].strip().endswith("╯")

    play(work, shop(), size=(80, 24))


def test_a_finished_command_has_the_colours_of_its_raw_output() -> None:
    daemon = FakeDaemon()
    raw = b"\x1b[1;31m[b]1 failed\x1b[0m, 8 passed\r\n"
    daemon.raw["build"] = raw
    text = "[b]1 failed, 8 passed\n"
    daemon.open_terminal("build", record(0, "pytest", stdout=text, raw_end=len(raw)))

    async def work(stage: Stage) -> None:
        await stage.press("alt+1")
        await stage.shows("[b]1 failed, 8 passed")
        view = stage.app.query_one("TerminalView", LineView)

        def styles() -> dict[str, Any]:
            return {each.text: each.style for each in view.draw(1)}

        await until(lambda: "[b]1 failed" in styles(), "the styles are read")
        assert str(styles()["[b]1 failed"]) == "bold color(1)"
        assert str(styles()[", 8 passed"]) == "none"

    play(work, daemon)


def test_ten_thousand_blocks_are_drawn_line_by_line() -> None:
    daemon = FakeDaemon()
    many = [record(seq, f": {seq}", stdout="one line\n") for seq in range(10_000)]
    daemon.open_terminal("build", *many)

    async def work(stage: Stage) -> None:
        await stage.press("alt+1")
        await stage.shows(": 9999")
        view = stage.app.query_one("TerminalView", LineView)
        began = time.perf_counter()
        for _ in range(20):
            await stage.press("pageup")
        assert view.count() > 40_000
        assert time.perf_counter() - began < 10
        await stage.press("ctrl+end")
        await stage.shows(": 9999")

    play(work, daemon)


# Pictures for the documentation; at most fifteen.


async def show_terminal(stage: Stage) -> None:
    await stage.press("alt+2")
    await stage.shows("── live ──")
    stage.daemon.start_command("build", "pytest -q tests/cart", 2)
    stage.daemon.print(
        "build",
        "pytest -q tests/cart\r\n\x1b]133;C\x07\x1b[32m......\x1b[31mF\x1b[32m..\x1b[0m [ 60%]\r\n",
    )
    await stage.shows("60%")


async def show_conversation(stage: Stage) -> None:
    await stage.press("alt+1")
    await stage.shows_tab("agent:id-ann")
    feed = stage.daemon.transcripts["ann"]
    text = "> from agent:pm · …\nThe cart test fails since yesterday. Find out why.\n"
    feed.put(entry("turn_opened", turn=1, text=text))
    feed.put(event("assistant_text", text="I run the tests of the cart first."))
    feed.put(event("tool_use", id="t", name="Bash", title="pytest -q tests/cart"))
    feed.put(event("tool_result", id="t", text="......F..\n1 failed, 8 passed in 0.41s"))
    feed.put(event("plan", steps=[{"text": "Find the change", "status": "in_progress"}]))
    await stage.shows("Find the change", "Esc interrupts")
    pane = stage.app.active
    assert isinstance(pane, ConversationPane)
    pane._spins = False  # the picture is of one moment
    await stage.pilot.pause(0.2)
    pane._draw_spinner()


async def show_request(stage: Stage) -> None:
    await show_conversation(stage)
    stage.daemon.set_agent("ann", state="blocked", blocked=blocked("Bash"))
    stage.daemon.ask(request(input={"command": "git push --force"}, title="Push the branch"))
    await stage.shows("🟡 1 F2")
    await stage.press("f2")
    await stage.shows("REQUEST 1 of 1")


async def show_help(stage: Stage) -> None:
    await stage.press("alt+2", "f1")
    await stage.shows("Ctrl-E")


async def show_workflows(stage: Stage) -> None:
    parameters = [ParameterInfo(name="tag", type="str", required=True)]
    defined = WorkflowDefinition(
        name="release",
        file="plugins/release.py",
        line=7,
        doc="Test, tag and announce a version.",
        parameters=parameters,
    )
    runs = [
        workflow("01A", status="failed", kwargs='{"tag": "1.1"}', error="tests failed", calls=2),
        workflow("01B", kwargs='{"tag": "1.2"}', current=["agent.ask ann"], checkpoint="tested"),
    ]
    stage.daemon.runs = WorkflowList(result=runs, workflows=[defined], problems=[])
    await stage.press("f6")
    await stage.shows("tests failed", "agent.ask ann", "release(tag: str)")


PICTURES: dict[str, tuple[Any, str]] = {
    "tui-terminal": (show_terminal, "aegis-dark"),
    "tui-terminal-light": (show_terminal, "aegis-light"),
    "tui-conversation": (show_conversation, "aegis-dark"),
    "tui-request": (show_request, "aegis-dark"),
    "tui-workflows": (show_workflows, "aegis-dark"),
    "tui-help": (show_help, "aegis-dark"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documentation_are_what_is_shown(name: str) -> None:
    show, theme = PICTURES[name]

    async def work(stage: Stage) -> None:
        stage.app.theme = theme
        await show(stage)
        await asyncio.sleep(0.1)
        await stage.pilot.pause()
        path = IMAGES / f"{name}.svg"
        if UPDATES:
            path.write_text(screenshot(stage), encoding="utf-8")
        words = words_of(path.read_text(encoding="utf-8"))
        # What is shown first is not laid out yet.
        await until(
            lambda: words_of(screenshot(stage)) == words,
            f"{path}: look at it, then run this test with AEGIS_UPDATE_PICTURES=1",
        )

    play(work, shop(), size=(100, 24))


def screenshot(stage: Stage) -> str:
    return stage.app.export_screenshot(title="aegis-actors tui")


def words_of(picture: str) -> list[str]:
    """The texts of a picture with their colours' classes; its numbers of clips are its own."""
    return re.findall(r"<text [^>]*>([^<]*)</text>", picture)
