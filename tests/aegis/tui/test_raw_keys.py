"""Keys past Textual's parser: the division of what the own terminal sent."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.drivers import linux_driver

from aegis.tui.raw_keys import (
    CUT_CHARS,
    ESCAPE_PAIR_S,
    Divider,
    RawKeys,
    RawMode,
    RawParser,
    RawPaste,
    RawSwitched,
    install,
)

MOUSE = "\x1b[<0;10;5M"


def divided(*reads: str) -> list[tuple[str, str]]:
    divider = Divider()
    parts: list[tuple[str, str]] = []
    for number, read in enumerate(reads):
        parts += divider.feed(read, float(number))
    return parts


@pytest.fixture(autouse=True)
def raw_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RawMode, "divider", Divider())
    monkeypatch.setattr(RawMode, "is_on", False)
    monkeypatch.setattr(RawMode, "may_begin", True)


def test_textual_still_reads_with_the_name_that_is_replaced() -> None:
    # Textual calls it by this name of its module; without it raw mode loses bytes of keys.
    code = "\n".join(
        [
            "import inspect",
            "from textual.drivers.linux_driver import LinuxDriver",
            "source = inspect.getsource(LinuxDriver.run_input_thread)",
            "assert 'XTermParser(' in source and 'parser.feed' in source, source",
            "source = inspect.getsource(LinuxDriver)",
            "assert 'WriterThread(' in source, source",
        ]
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert hasattr(linux_driver, "XTermParser")
    assert hasattr(linux_driver, "WriterThread")


@pytest.mark.parametrize(
    "keys", ["a", "\x1b", "\x1b[A", "\x08", "\x7f", "\x1b\r", "\x1b\x1b", "\x00", "é🟢", "\x1bOP"]
)
def test_keys_pass_as_they_are(keys: str) -> None:
    assert divided(keys) == [("keys", keys)]


def test_mouse_focus_and_answers_go_to_textual() -> None:
    assert divided(f"a{MOUSE}b\x1b[I\x1b[?2026;1$y\x1b[48;24;80;480;640t") == [
        ("keys", "a"),
        ("textual", MOUSE),
        ("keys", "b"),
        ("textual", "\x1b[I"),
        ("textual", "\x1b[?2026;1$y"),
        ("textual", "\x1b[48;24;80;480;640t"),
    ]


def test_the_toggle_is_found_between_keys_but_not_in_a_paste() -> None:
    assert divided("a\x0bb") == [("keys", "a"), ("toggle", "\x0b"), ("keys", "b")]
    assert divided("\x1b[107;5u") == [("toggle", "\x1b[107;5u")]
    assert divided("\x1b[200~a\x0bb\x1b[201~c") == [("paste", "a\x0bb"), ("keys", "c")]


def test_two_escapes_in_a_row_are_one_way_out() -> None:
    divider = Divider()
    assert [*divider.feed("\x1b", 1.0)] == [("keys", "\x1b")]
    assert [*divider.feed("\x1b", 1.0 + ESCAPE_PAIR_S)] == [("second escape", "\x1b")]
    assert [*divider.feed("\x1b", 1.1 + ESCAPE_PAIR_S)] == [("keys", "\x1b")]
    assert [*divider.feed("x", 1.2 + ESCAPE_PAIR_S)] == [("keys", "x")]
    assert [*divider.feed("\x1b", 1.3 + ESCAPE_PAIR_S)] == [("keys", "\x1b")]
    assert [*divider.feed("\x1b", 9.0)] == [("keys", "\x1b")]


@given(st.lists(st.integers(0, 5000), max_size=6))
def test_a_paste_that_is_cut_anywhere_is_whole(cuts: list[int]) -> None:
    text = "".join(f"line {number}\x1b[20~ end\r" for number in range(200))
    stream = f"\x1b[200~{text}\x1b[201~"
    # The first read of a paste is a long one: what it cuts is completed by the next.
    places = sorted({0, len(stream), *(min(max(each, CUT_CHARS), len(stream)) for each in cuts)})
    reads = [stream[one:other] for one, other in itertools.pairwise(places)]
    assert divided(*reads) == [("paste", text)]


@given(st.integers(1, len(MOUSE) - 1))
def test_a_mouse_event_that_is_cut_by_a_full_read_is_whole(cut: int) -> None:
    keys = "k" * CUT_CHARS
    parts = divided(keys + MOUSE[:cut], MOUSE[cut:] + "z")
    assert parts == [("keys", keys), ("textual", MOUSE), ("keys", "z")]


def test_the_parser_switches_at_once_so_that_no_key_takes_the_wrong_way() -> None:
    parser = RawParser()
    messages = [*parser.feed("a\x0b\x08\x1b[A\x0bb")]
    kinds = [type(each) for each in messages]
    assert kinds == [events.Key, RawSwitched, RawKeys, RawSwitched, events.Key]
    assert isinstance(messages[2], RawKeys)
    assert messages[2].keys == b"\x08\x1b[A"
    assert not RawMode.is_on


def test_without_a_terminal_the_toggle_is_a_key_like_others() -> None:
    RawMode.may_begin = False
    [message] = RawParser().feed("\x0b")
    assert isinstance(message, events.Key)
    assert message.key == "ctrl+k"


def test_a_paste_is_textuals_in_run_mode_and_raw_in_raw_mode() -> None:
    parser = RawParser()
    [pasted] = parser.feed("\x1b[200~one\ntwo\x1b[201~")
    assert isinstance(pasted, events.Paste)
    assert pasted.text == "one\ntwo"
    RawMode.switch(True)
    [raw] = parser.feed("\x1b[200~one\ntwo\x1b[201~")
    assert isinstance(raw, RawPaste)
    assert raw.text == "one\ntwo"


def test_alt_and_a_digit_is_a_key_of_tabs() -> None:
    [message] = RawParser().feed("\x1b3")
    assert isinstance(message, events.Key)
    assert message.key == "alt+3"


def test_alt_and_a_digit_between_other_keys_of_one_read_is_a_key_of_tabs() -> None:
    messages = [*RawParser().feed("a\x1b3ls\n\x1b[1;3D")]
    assert [each.key for each in messages if isinstance(each, events.Key)] == [
        *("a", "alt+3", "l", "s", "enter", "alt+left")
    ]


@pytest.mark.parametrize("reads", [True, False], ids=["with a read", "without a read"])
def test_keys_typed_ahead_come_before_all_others(
    monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    monkeypatch.setattr("textual.drivers.linux_driver.XTermParser", RawParser)  # put back later
    install("\x1b2x")
    parser = RawParser()
    messages = [*(parser.feed("y") if reads else parser.tick()), *parser.feed("z")]
    wanted = ["alt+2", "x", *("y" * reads), "z"]
    assert [each.key for each in messages if isinstance(each, events.Key)] == wanted
