"""The bytes of a submission, and what no shell can be given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.terminals.hooks.fallback import CshAdapter, PosixAdapter, TypedAdapter
from aegis.terminals.hooks.submission import (
    INTERRUPT_LINE,
    PROBE_KEY,
    SUBMIT_KEY,
    check_command,
    encode_submission,
)

BEGIN, END = b"\x1b[200~", b"\x1b[201~"
PASSED_BY_KEY = b"\x03\x0d\x11\x13\x1a\x1c"


def read_back(submission: bytes) -> bytes:
    """What a line editor reads: pastes as they are, the inserting keys as their characters."""
    assert submission.startswith(SUBMIT_KEY)
    assert submission.endswith(b"\r")
    rest = submission[len(SUBMIT_KEY) : -1]
    text = b""
    while rest:
        if rest.startswith(BEGIN):
            pasted, _, rest = rest[len(BEGIN) :].partition(END)
            assert not any(control in pasted for control in PASSED_BY_KEY)
            text += pasted
        else:
            key, _, rest = rest.partition(b"~")
            assert key.startswith(b"\x1b[8133;")
            text += bytes([int(key.removeprefix(b"\x1b[8133;")) - 100])
    return text


@pytest.mark.parametrize(
    "cmd",
    [
        "",
        "echo hi",
        "\ttab and  spaces ",
        "a\nb\n\nc\n",
        "ünïcödé 日本語 🚀",
        "\x1b[201~",
        "\x1b[201~\x1b[201~\x1b\x1b[201~",
        "\r",
        "\r\r",
        "a\r\nb\x03c\x11\x13\x1a\x1c",
        "\x1b[20\x031~",
        "x" * 200_000,
    ],
)
def test_the_editor_reads_exactly_the_text(cmd: str) -> None:
    assert read_back(encode_submission(cmd)) == cmd.encode()


@given(st.text(st.sampled_from("\x1b[2001~\r\n\x03a~;ü"), max_size=60))
def test_the_editor_reads_exactly_any_text_made_of_what_matters(cmd: str) -> None:
    assert read_back(encode_submission(cmd)) == cmd.encode()


def test_a_plain_text_is_one_paste() -> None:
    assert encode_submission("echo hi") == SUBMIT_KEY + BEGIN + b"echo hi" + END + b"\r"


@pytest.mark.parametrize(
    ("cmd", "named"),
    [("a\0b", "U+0000"), ("\0", "NUL"), ("a\ud800", "U+D800"), ("\udcff", "U+DCFF")],
)
def test_what_no_shell_can_read_is_refused_with_the_character_and_the_remedy(
    cmd: str, named: str, tmp_path: Path
) -> None:
    settings: Any = {
        "integration": "fallback",
        "secret": b"s",
        "argv": ("sh",),
        "directory": tmp_path,
    }
    adapters = [kind(**settings) for kind in (PosixAdapter, TypedAdapter, CshAdapter)]
    refusals: list[Callable[[str], object]] = [check_command, encode_submission]
    for refuse in refusals + [each.encode for each in adapters]:
        with pytest.raises(
            InvalidRequest, match=r"cmd holds .*: (leave it out|send the whole)"
        ) as caught:
            refuse(cmd)
        assert named in str(caught.value)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_everything_else_is_accepted(cmd: str) -> None:
    check_command(cmd)


def test_the_interrupt_is_followed_by_a_key_that_wakes_the_editor() -> None:
    assert INTERRUPT_LINE == b"\x03" + PROBE_KEY
