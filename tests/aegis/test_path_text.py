"""Paths as text: every path of bytes goes to text that UTF-8 can carry, and comes back."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.path_text import (
    MAX_PATH_CHARS,
    path_after_moves,
    path_of_stored,
    path_of_text,
    shell_word,
    stored_path,
    text_of_path,
)

PATHS = st.binary(max_size=60).map(lambda data: b"/" + data.replace(b"\0", b""))


@given(PATHS)
def test_every_path_of_the_system_comes_back(data: bytes) -> None:
    path = os.fsdecode(data)
    text = text_of_path(path)
    assert os.fsencode(path_of_text(text)) == data
    text.encode()
    assert text_of_path(text) == text


@given(PATHS.filter(lambda data: b"\\udcff" not in data))
def test_what_utf8_can_carry_stays_as_it_is(data: bytes) -> None:
    path = data.decode(errors="replace")
    assert text_of_path(path) == path
    assert path_of_text(path) == path


@given(PATHS)
def test_the_notation_has_no_character_that_a_terminal_obeys(data: bytes) -> None:
    text = text_of_path(os.fsdecode(data + b"\xff"))
    assert text.startswith("$'")
    assert text.isprintable()


def test_the_longest_path_has_a_text_within_the_limit() -> None:
    assert len(text_of_path(os.fsdecode(b"\xff" * 4096))) == MAX_PATH_CHARS


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r"$'/a\xff'", b"/a\xff"),
        (r"$'/a\377\0007'", b"/a\xff\x007"),
        (r"$'/a\t\n\e\\\''", b"/a\t\n\x1b\\'"),
        (r"$'/a\q'", rb"/a\q"),
        (r"$'/a'b'", rb"$'/a'b'"),
        (r"$'/a\'", rb"$'/a\'"),
        (r"$'/a", rb"$'/a"),
        (r"/a\xff", rb"/a\xff"),
        (r"$'/a\xc3\xa9'", "/aé".encode()),
    ],
)
def test_the_notation_is_read_as_bash_reads_it(text: str, path: bytes) -> None:
    assert os.fsencode(path_of_text(text)) == path


@pytest.mark.real
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_read_the_notation_as_it_is_meant(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    every = bytes(range(1, 256)) + b"7\xff7"
    text = text_of_path(os.fsdecode(every))
    done = subprocess.run(
        [shell, "-c", f"printf %s {text}"],
        capture_output=True,
        check=True,
        env={"LANG": "C.UTF-8", "PATH": os.environ["PATH"]},
    )
    assert done.stdout == every


def test_half_of_a_pair_which_no_system_gives_is_text_too() -> None:
    assert text_of_path("/\ud800") == r"$'/\xed\xa0\x80'"


@pytest.mark.parametrize(
    ("path", "root", "stored"),
    [
        ("/r", "/r", "."),
        ("/r/a/b", "/r", "a/b"),
        ("/ra", "/r", "/ra"),
        ("/", "/r", "/"),
        ("/a", "/", "a"),
        (r"$'/r/\xff'", "/r", r"$'\xff'"),
        (r"$'/r\xff/a'", r"$'/r\xff'", "a"),
        (r"/r/$'x'", "/r", r"./$'x'"),
    ],
)
def test_a_path_is_stored_relative_to_the_root_that_it_is_below(
    path: str, root: str, stored: str
) -> None:
    assert stored_path(path, root) == stored
    assert path_of_stored(stored, root) == path


def test_an_absolute_path_of_an_older_version_moves_with_its_root() -> None:
    assert path_of_stored("a/b", "/two") == "/two/a/b"
    assert path_after_moves("/two/a", "/two", ("/one",)) == "/two/a"
    assert path_after_moves("/one/a", "/two", ("/before", "/one")) == "/two/a"
    assert path_after_moves("/oneself", "/two", ("/one",)) == "/oneself"
    assert path_after_moves("/anywhere", "/two", ("/",)) == "/two/anywhere"


def test_a_word_for_a_shell_is_quoted_once() -> None:
    assert shell_word(PurePath("/a b")) == "'/a b'"
    assert shlex.split(shell_word("/a")) == ["/a"]
    assert shell_word("/a\udcff") == r"$'/a\xff'"
