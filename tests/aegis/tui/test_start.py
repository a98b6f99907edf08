"""The start of the interface: the first frame needs Textual only, and nothing is lost before."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import trio
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from aegis.tui import app as app_module
from aegis.tui import held_keys
from aegis.tui.dialogs.asking import AskLine
from aegis.tui.link_later import MAX_EARLY
from aegis.tui.panes import terminal as terminal_pane
from aegis.tui.raw_keys import RawMode, RawParser
from aegis.tui.window import background_of, typed_of
from tests.aegis.tui.fake_daemon import FakeDaemon, link_to, until
from tests.aegis.tui.test_app import Stage, StillApp, play, shop

HEAVY = ("trio", "cattrs", "aegis.client", "aegis.protocol", "aegis.tui.panes.terminal")


def test_the_first_frame_needs_neither_trio_nor_the_client() -> None:
    program = f"import aegis.tui.app, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


UNUSED = ("platformdirs", "textual.widgets._tree", "textual.widgets._select", "textual.types")


def test_parts_of_textual_that_are_not_used_are_not_imported_until_they_are() -> None:
    program = "\n".join(
        [
            "import sys",
            "from aegis.tui.light_textual import import_textual",
            "import_textual()",
            "import aegis.tui.app",
            f"print([m for m in {UNUSED!r} if m in sys.modules])",
            "import textual.app, textual.types, platformdirs",
            "assert textual.types.DirEntry, 'it is the module itself'",
            "assert textual.app.user_downloads_path() == platformdirs.user_downloads_path()",
        ]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


def test_what_is_asked_before_the_connection_is_done_after_it() -> None:
    daemon = FakeDaemon()
    daemon.open_terminal("build")
    done: list[Any] = []

    async def run() -> None:
        loaded = lambda: done.append((-1, None))  # noqa: E731
        app = StillApp("/nowhere", None, link_type=link_to(daemon), loaded=loaded)

        def asked(number: int) -> None:
            async def work(client: Any) -> None:
                done.append((number, client))

            app.link.call(work)

        for number in range(MAX_EARLY + 3):
            asked(number)
        async with app.run_test() as pilot:
            try:
                await until(lambda: len(done) == 1 + MAX_EARLY, "all of them are done")
                asked(1000)
                await until(lambda: done[-1] == (1000, daemon.client), "and later ones")
                await pilot.pause()
            finally:
                await app.link.stop()

    asyncio.run(run())
    assert done[0] == (-1, None)
    assert sorted(number for number, _ in done[1:]) == [*range(MAX_EARLY), 1000]


def test_an_app_that_ends_before_the_link_is_loaded_ends() -> None:
    async def run() -> None:
        app = StillApp("/nowhere", None, link_type=link_to(FakeDaemon()))
        async with app.run_test():
            await app.action_quit()

    asyncio.run(asyncio.wait_for(run(), 30))


def unreached() -> FakeDaemon:
    """A daemon with an agent and a terminal, to which there is no connection yet."""
    daemon = shop()
    daemon.is_reached = trio.Event()
    return daemon


def press_early(daemon: FakeDaemon, acted: Callable[[], bool], *keys: str) -> StillApp:
    """Press keys before there is a connection, and wait until they have ``acted`` on the daemon."""
    app = StillApp("/nowhere", None, link_type=link_to(daemon))

    async def run() -> None:
        async with app.run_test() as pilot:
            try:
                await pilot.press(*keys)
                assert (daemon.called, app.tabs.active) == ([], "view:welcome")
                daemon.is_reached.set()
                await until(lambda: not app.holds_keys, "no key waits")
                await until(acted, "the keys have acted")
                await pilot.pause()
            finally:
                await app.link.stop()

    asyncio.run(run())
    return app


@pytest.fixture(autouse=True)
def plain_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RawMode, "is_on", False)
    monkeypatch.setattr(RawMode, "may_begin", False)


def test_keys_pressed_before_the_connection_act_once_it_is_there() -> None:
    daemon = unreached()
    app = press_early(daemon, lambda: bool(daemon.called), "alt+1", "escape")
    assert app.tabs.active == "agent:id-ann"
    assert daemon.called == [("interrupt", "ann")]


def test_a_command_typed_ahead_runs_on_the_terminal_that_was_chosen_before_it() -> None:
    daemon = unreached()
    press_early(daemon, lambda: bool(daemon.called), "alt+2", *"make", "enter")
    assert daemon.called == [("run", ("build", "make"))]


def test_a_name_typed_ahead_is_that_of_the_dialog() -> None:
    daemon = unreached()
    press_early(daemon, lambda: bool(daemon.called), "ctrl+e", *"logs", "enter")
    assert daemon.called == [("spawn", "logs")]


def test_a_command_typed_while_its_terminal_starts_runs_there() -> None:
    daemon = shop()
    daemon.may_spawn = trio.Event()

    async def work(stage: Stage) -> None:
        await stage.press("ctrl+e")
        await stage.shows("TERMINAL")
        await stage.type("logs")
        await until(lambda: ("spawn", "logs") in daemon.called, "it starts")
        await stage.type("make")
        daemon.may_spawn.set()
        await until(lambda: ("run", ("logs", "make")) in daemon.called, "the command is run")

    play(work, daemon)


def test_past_commands_that_come_late_are_recalled_before_a_line_that_was_entered() -> None:
    daemon = shop()
    daemon.may_read = trio.Event()

    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await stage.shows("RUN")
        await stage.type("make")
        await until(lambda: ("run", ("build", "make")) in daemon.called, "it is run")
        daemon.may_read.set()
        await stage.shows("↳ exit 1")
        for line in ("make", "pytest -q", "git status --short"):
            await stage.press("up")
            focused = stage.app.focused
            assert isinstance(focused, Input)
            await until(lambda box=focused, text=line: box.value == text, f"{line} is recalled")

    play(work, daemon)


def test_keys_typed_ahead_into_raw_mode_go_to_the_program() -> None:
    daemon = unreached()

    def is_typed() -> bool:
        return "build" in daemon.output and daemon.output["build"].typed == b"vi"

    app = press_early(daemon, is_typed, "alt+2", "ctrl+k", "v", "i")
    assert RawMode.is_on
    assert app.tabs.active == "term:build"
    assert daemon.output["build"].typed == b"vi"


def test_raw_keys_right_after_a_change_of_the_tab_go_to_the_new_terminal() -> None:
    daemon = FakeDaemon()
    for name in ("first", "second"):
        daemon.open_terminal(name)

    async def work(stage: Stage) -> None:
        await stage.press("alt+1")
        await stage.shows("── live ──")
        await until(lambda: RawMode.may_begin, "the terminal takes keys")
        for message in RawParser().feed("\x1b2\x0bvim\r"):  # one read of the own terminal
            stage.app.post_message(message)
        await until(lambda: "second" in daemon.output, "the other terminal is shown")
        await until(lambda: daemon.output["second"].typed == b"vim\r", "it gets the keys")
        assert daemon.output["first"].typed == b""
        assert RawMode.is_on

    play(work, daemon)


@pytest.mark.parametrize(("early_s", "typed"), [(60.0, b"vim\r"), (-1.0, b"")])
def test_raw_keys_wait_for_the_stream_of_their_terminal_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch, early_s: float, typed: bytes
) -> None:
    monkeypatch.setattr(terminal_pane, "EARLY_S", early_s)
    daemon = shop()
    daemon.may_watch = trio.Event()

    async def work(stage: Stage) -> None:
        await stage.press("alt+2")
        await until(lambda: "build" in daemon.output, "its stream is asked for")
        for message in RawParser().feed("\x0bvim\r"):
            stage.app.post_message(message)
        await stage.shows("RAW")
        await stage.pilot.pause()
        daemon.may_watch.set()
        if not typed:
            await until(lambda: "not typed" in stage.app.remark, "the remark is shown")
        await until(lambda: daemon.output["build"].typed == typed, "the keys are typed")

    play(work, daemon)


def test_ctrl_q_leaves_although_other_keys_wait() -> None:
    async def run() -> None:
        app = StillApp("/nowhere", None, link_type=link_to(unreached()))
        async with app.run_test() as pilot:
            await pilot.press("alt+1", "ctrl+q")
        assert not app.is_running

    asyncio.run(asyncio.wait_for(run(), 30))


def test_without_a_daemon_keys_wait_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "LISTED_S", 0.05)

    async def run() -> None:
        app = StillApp("/nowhere", None, link_type=link_to(unreached()))
        async with app.run_test() as pilot:
            try:
                await pilot.press("ctrl+e", "x")
                await until(lambda: isinstance(app.screen, AskLine), "the dialog opens")
                await until(lambda: app.screen.query_one(Input).value == "x", "the key is in it")
            finally:
                await app.link.stop()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_no_more_keys_wait_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_keys, "MAX_HELD", 300)
    daemon, kept = unreached(), 300 - len(("alt+2",))

    async def run() -> None:
        app = StillApp("/nowhere", None, link_type=link_to(daemon))
        bells: list[None] = []
        app.bell = lambda: bells.append(None)  # type: ignore[method-assign]
        async with app.run_test() as pilot:
            try:
                await app.on_event(events.Key("alt+2", None))
                for _ in range(kept + 3):
                    await app.on_event(events.Key("x", "x"))
                assert len(bells) == 3
                daemon.is_reached.set()
                await until(lambda: not app.holds_keys, "the keys have acted")
                line = await typed_line(app, pilot)
                assert line == "x" * kept
            finally:
                await app.link.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


async def typed_line(app: StillApp, pilot: Pilot[None]) -> str:
    """What is in the input of the active tab."""
    await pilot.pause()
    assert app.active is not None
    return app.active.query_one(Input).value


def test_keys_between_the_answers_of_the_own_terminal_are_kept() -> None:
    read = b"ab\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b1\x1b[?64;1;9cls\n"
    assert background_of(read) == (30, 30, 46)
    assert typed_of(read) == "ab\x1b1ls\n"
    assert typed_of(b"") == ""
