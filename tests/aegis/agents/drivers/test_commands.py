"""Text that begins like an agent's own command reaches every agent as text."""

from __future__ import annotations

import time

import pytest

from aegis.agents.drivers.commands import MARK, as_plain, as_text
from aegis.protocol.agent_events import SlashCommand
from tests.aegis.agents.drivers.acp.wire import frames
from tests.aegis.agents.drivers.acp.wire import ready as ready_acp
from tests.aegis.agents.drivers.claude.wire import ready as ready_claude
from tests.aegis.agents.drivers.claude.wire import written

HOSTILE = [
    "/yolo",
    "/",
    " /yolo",
    "\t/yolo",
    "\n/yolo",
    "\r\n\r\n/yolo",
    "\u2028/yolo",
    "\u00a0/yolo",
    "\u3000/yolo",
    "\ufeff/yolo",
    "\u200b\u200d/yolo",
    "\u2066/yolo",
    "\x00/yolo",
    "\x1b/yolo",
    "\ufe0f/yolo",
    "\U000e0020/yolo",
    "\uff0fyolo",
    "\u2044yolo",
    "\u2215yolo",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_text_that_begins_like_a_command_is_marked(text: str) -> None:
    assert as_text(text) == f"{MARK}{text}"
    assert as_text(as_text(text)) == as_text(text)


@pytest.mark.parametrize("text", ["", " ", "yolo", "> from pm\n/yolo", "see /etc", "./x", "\n"])
def test_any_other_text_is_sent_as_it_is(text: str) -> None:
    assert as_text(text) == text


def test_a_long_beginning_takes_no_long_time() -> None:
    text = " \u200b" * 500_000
    began = time.process_time()
    as_text(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_claude_code_gets_it_as_text(text: str) -> None:
    [frame] = written(ready_claude().send("u1", text))
    assert frame["message"]["content"] == [{"type": "text", "text": f"{MARK}{text}"}]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_an_acp_agent_gets_it_as_text_and_the_primer_too(text: str) -> None:
    [frame] = frames(ready_acp(primer=text).turn("t1", text))
    assert [each["text"] for each in frame["params"]["prompt"]] == [f"{MARK}{text}"] * 2


SKILLS = [SlashCommand(name="$zebra"), SlashCommand(name="plan")]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("see @a", "see \\@a"),
        ("@a\n@b", "\\@a\n\\@b"),
        ("x\u00a0@a \ufeff@b\u3002@c", "x\u00a0\\@a \ufeff\\@b\u3002\\@c"),
        ("a@b.c (@d) \\@e \u00e9@f @ g", "a@b.c (@d) \\@e \u00e9@f @ g"),
        ("$zebra", "$zebra"),
    ],
)
def test_a_mention_of_a_file_becomes_text(text: str, plain: str) -> None:
    """The real Claude Code is tried in tests/agents_real/test_mentions.py, codex too."""
    assert as_plain(text, "files", None) == plain
    assert as_plain(text, "", None) == text


@pytest.mark.parametrize(
    ("text", "plain", "unknown"),
    [
        ("$zebra's x$zebra", "$\\zebra's x$\\zebra", "$\\zebra's x$\\zebra"),
        ("$zebra-x $other $HOME", "$zebra-x $other $HOME", "$\\zebra-x $\\other $HOME"),
        ("[$other](D)", "[$\\other](D)", "[$\\other](D)"),
        ("[$Other\\] (D) @a", "[$\\Other\\] (D) @a", "[$\\Other\\] (D) @a"),
    ],
)
def test_a_mention_of_a_skill_becomes_text(text: str, plain: str, unknown: str) -> None:
    assert as_plain(text, "skills", SKILLS) == plain
    assert as_plain(text, "skills", None) == unknown


def test_a_long_text_with_many_marks_is_looked_through_in_time() -> None:
    text = "$" * 50_000 + "[$a" * 20_000 + " @" * 50_000
    began = time.process_time()
    for mentions in ("files", "skills"):
        as_plain(text, mentions, None)
    assert time.process_time() - began < 5
