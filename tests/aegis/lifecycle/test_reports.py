"""The rules of OSC 7501, each by its cases."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.lifecycle.reports import (
    MAX_SEQUENCE_BYTES,
    Report,
    read_report,
)


def b64(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return base64.b64encode(data).decode()


VALID: list[tuple[str, Report]] = [
    *((f"state={state}", Report(state=state)) for state in ("idle", "working", "done")),
    *((f"state={state}", Report(state=state)) for state in ("blocked", "error", "clear")),
    # The reports that agents were seen to send.
    ("state=idle:app=claude-code", Report(state="idle")),
    ("state=working:app=claude-code:msg=dA==", Report(state="working", msg="t")),
    (
        "state=blocked:app=claude-code:kind=permission:msg=YXBwcm92ZSBCYXNoOiB0b3VjaCB4LnR4dA==",
        Report(
            state="blocked",
            kind="permission",
            msg="approve Bash: touch x.txt",
        ),
    ),
    (
        "state=blocked:app=claude-code:kind=question:msg=YW5zd2VyOiBXaGljaD8gKEEgwrcgQik=",
        Report(state="blocked", kind="question", msg="answer: Which? (A · B)"),
    ),
    (
        "state=error:app=claude-code:msg=QVBJIEVycm9yOiA0MDAgc2NyaXB0ZWQgNDAw",
        Report(state="error", msg="API Error: 400 scripted 400"),
    ),
    # Order of the keys; unknown keys; repeats, of which the last counts.
    ("app=x:state=done", Report(state="done")),
    ("state=done:later=1:x=", Report(state="done")),
    ("state=idle:state=done", Report(state="done")),
    ("state=nap:state=done", Report(state="done")),
    ("state=done:id=a:id=b", Report(state="done", id="b")),
    # Malformed pairs are skipped.
    ("junk:state=done", Report(state="done")),
    ("=x:state=done", Report(state="done")),
    (":::state=done:", Report(state="done")),
    ("State=idle:state=done", Report(state="done")),
    ("st4te=idle:state=done", Report(state="done")),
    ("state=done:app=a b", Report(state="done")),
    ("state=done:app=a;b", Report(state="done")),
    ("state=done:msg=!!!", Report(state="done")),
    ("state=done:app=ok:app=n o", Report(state="done")),
    (" state = done : app = x ", Report(state="done")),
    # Values that a key does not have are absent.
    ("state=blocked:kind=auth", Report(state="blocked", kind="auth")),
    ("state=blocked:kind=coffee", Report(state="blocked")),
    ("state=working:kind=permission", Report(state="working")),
    ("state=working:progress=0", Report(state="working", progress=0)),
    ("state=blocked:progress=100", Report(state="blocked", progress=100)),
    ("state=working:progress=101", Report(state="working")),
    ("state=working:progress=-1", Report(state="working")),
    ("state=working:progress=+5", Report(state="working")),
    ("state=working:progress=5.5", Report(state="working")),
    ("state=working:progress=", Report(state="working")),
    ("state=working:progress=" + "9" * 3000, Report(state="working")),
    ("state=done:progress=50", Report(state="done")),
    ("state=done:app=a/b", Report(state="done")),
    ("state=done:app=", Report(state="done")),
    # Ids.
    ("state=done:id=a", Report(state="done", id="a")),
    ("state=done:id=a/b/c/d/e/f/g/h", Report(state="done", id="a/b/c/d/e/f/g/h")),
    ("state=done:id=A_.+-9", Report(state="done", id="A_.+-9")),
    ("state=done:id=" + "s" * 32, Report(state="done", id="s" * 32)),
    # Texts: padding is optional; any language; the longest ones.
    ("state=done:msg=YQ", Report(state="done", msg="a")),
    ("state=done:msg=YQ==", Report(state="done", msg="a")),
    ("state=done:msg=", Report(state="done")),
    ("state=done:title=" + b64("café ✓"), Report(state="done", title="café ✓")),
    ("state=done:title=" + b64("t" * 192), Report(state="done", title="t" * 192)),
    ("state=done:msg=" + b64("m" * 2048), Report(state="done", msg="m" * 2048)),
    ("state=done:app=" + "a" * 32, Report(state="done")),
    ("state=done:" + "k" * 16 + "=1", Report(state="done")),
]

DISCARDED = [
    # No state, or one that is not known.
    "",
    "?",
    "app=x",
    "state=",
    "state=sleeping",
    "state=done:state=sleeping",
    "state=Done",
    # Malformed ids: never a report for the root.
    *(
        f"state=working:id={each}"
        for each in ("", "/", "a/", "/a", "a//b", "a!", "a b", "é", "a=b")
    ),
    "state=working:id=" + "s" * 33,
    "state=working:id=a/b/c/d/e/f/g/h/i",
    "state=working:id=" + "/".join(["s" * 32] * 4),  # 131 bytes
    "state=clear:id=a//b",
    "state=clear:id=bad!:id=build",
    "state=clear:id=build:id=",
    # Limits, also of values that would be skipped, and of those that a repeat replaces.
    "state=done:" + "k" * 17 + "=1",
    "state=done:" + "K" * 17 + "=1",
    "state=done:app=" + "a" * 33,
    "state=done:app=" + "!" * 33,
    "state=done:app=" + "a" * 33 + ":app=x",
    "state=done:title=" + b64("t" * 193),
    "state=done:title=" + "=" * 257,
    "state=done:msg=" + b64("m" * 2049),
    "state=done:msg=" + "=" * 2733,
    # Base64.
    *(f"state=done:msg={each}" for each in ("a", "YQ=", "YQ===", "Y=Q=", "=YQ", "YR", "YWI_")),
    "state=done:msg=a:msg=YQ",
    # UTF-8.
    *(f"state=done:msg={b64(each)}" for each in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80")),
    # Control characters: C0, DEL and C1.
    *(f"state=done:title={b64(each)}" for each in ("a\nb", "\x1b[31m", "\t", "\0", "\x7f", "\x85")),
    "state=done:msg=" + b64("a\nb") + ":msg=YQ",
]


@pytest.mark.parametrize(("content", "expected"), VALID)
def test_a_valid_report_is_read(content: str, expected: Report) -> None:
    assert read_report(content.encode()) == expected


@pytest.mark.parametrize("content", DISCARDED)
def test_a_report_that_breaks_a_rule_is_discarded_whole(content: str) -> None:
    assert read_report(content.encode()) is None


@pytest.mark.parametrize("ending", [b"\x07", b"\x1b\\"])
def test_the_limit_of_a_sequence_counts_all_its_bytes(ending: bytes) -> None:
    room = MAX_SEQUENCE_BYTES - len(b"\x1b]7501;") - len(ending)
    content = b"state=done:x=".ljust(room, b"y")
    assert read_report(content, ending) == Report(state="done")
    assert read_report(content + b"y", ending) is None


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u2028", "\U000e0041"])
def test_characters_that_hide_or_reorder_are_escaped(hidden: str) -> None:
    found = read_report(
        f"state=blocked:msg={b64('rm ' + hidden + 'x')}:title={b64(hidden)}".encode()
    )
    assert found is not None
    assert found.msg == f"rm <U+{ord(hidden):04X}>x"
    assert hidden not in found.title


def test_a_text_of_escapes_is_bounded_too() -> None:
    found = read_report(f"state=blocked:msg={b64(chr(0x202E) * 682)}".encode())
    assert found is not None
    assert len(found.msg) == 2048
    assert found.msg.endswith("…")


@given(st.binary(max_size=5000))
def test_any_bytes_are_read_or_discarded(content: bytes) -> None:
    found = read_report(content)
    assert found is None or found.state


PAIRS = st.sampled_from(
    [
        *("state=done", "state=clear", "state=working", "id=a", "id=a/b", "id=a//", "id=", "id=a!"),
        *("msg=YQ", "msg=a", "msg=Cg", "app=x", "app=!", "x", "progress=7", "kind=auth"),
    ]
)


@given(st.lists(PAIRS, max_size=8))
def test_a_report_with_a_bad_id_or_text_is_never_read(pairs: list[str]) -> None:
    found = read_report(":".join(pairs).encode())
    if {"id=a//", "id=", "id=a!", "msg=a", "msg=Cg"} & set(pairs):
        assert found is None
    elif found is not None:
        ids = [pair.removeprefix("id=") for pair in pairs if pair.startswith("id=")]
        assert found.id == (ids[-1] if ids else "")
    else:
        assert not any(pair.startswith("state=") for pair in pairs)
