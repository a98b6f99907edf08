"""What a process's files in /proc say."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.processes.process_table import (
    CookiesOf,
    ProcessInfo,
    cookie_of,
    environment_range,
    has_cookie,
    parse_stat,
    with_ancestors,
)

TAIL = b" 4 5 6 34816 7 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 100 18446744073709551615\n"


@pytest.mark.parametrize(
    "name", [b"bash", b"a) S 1 2 3 (b", b")", b"", b"two words", b"new\nline", b"((", b"\xff"]
)
def test_the_name_may_hold_anything(name: bytes) -> None:
    info = parse_stat(b"42 (" + name + b") S" + TAIL)
    assert info == ProcessInfo(
        pid=42,
        name=name.decode(errors="replace"),
        state="S",
        session=6,
        threads=1,
        start_time=12345,
        parent=4,
        group=5,
        foreground_group=7,
    )


@pytest.mark.parametrize(
    "stat", [b"", b"42", b"42 (bash", b"42 (bash) S 1 2", b"(bash) S" + TAIL, b"x (bash) S" + TAIL]
)
def test_what_is_no_stat_file_is_refused(stat: bytes) -> None:
    with pytest.raises(ValueError, match=r"stat file must|invalid literal"):
        parse_stat(stat)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(stat: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert parse_stat(stat).pid >= 0


@pytest.mark.parametrize(
    ("state", "threads", "alive"),
    [("S", 1, True), ("Z", 1, False), ("X", 1, False), ("Z", 3, True)],
)
def test_a_zombie_is_dead_unless_another_thread_lives(
    state: str, threads: int, alive: bool
) -> None:
    info = ProcessInfo(pid=1, name="x", state=state, session=1, threads=threads, start_time=1)
    assert info.is_alive is alive


@pytest.mark.parametrize(
    ("environ", "cookie"),
    [
        (b"", None),
        (b"AEGIS_TERMINAL=/root/build/1", "/root/build/1"),
        (b"A=1\0AEGIS_TERMINAL=/root/build/1\0B=2\0", "/root/build/1"),
        (b"XAEGIS_TERMINAL=/root/build/1\0", None),
        (b"A=AEGIS_TERMINAL=/root/build/1\0", None),
        (b"AEGIS_TERMINALS=/root/build/1\0", None),
        (b"AEGIS_TERMINAL=\0", ""),
    ],
)
def test_a_cookie_is_one_whole_variable(environ: bytes, cookie: str | None) -> None:
    assert cookie_of(environ) == cookie
    assert has_cookie(environ, ["/root/build/1"]) is (cookie == "/root/build/1")
    assert not has_cookie(environ, ["/root/build/11", "/root/build/"])


@pytest.mark.parametrize(
    ("cookie", "of_root", "of_build"),
    [
        ("/root/build/a1.1.1", True, True),
        ("/root/BUILD/b2.7.3", True, True),
        ("/root/builder/a1.1.1", True, False),
        ("/root/build", False, False),
        ("/root/other/build/a1.1.1", False, False),
        ("/rootbuild/a1.1.1", False, False),
        ("/ROOT/build/a1.1.1", False, False),
        ("/another/a", False, False),
        ("/one/more", True, True),
        ("", False, False),
        (None, False, False),
    ],
)
def test_cookies_of_a_root_and_of_a_terminal(
    cookie: str | None, of_root: bool, of_build: bool
) -> None:
    also = frozenset({"/one/more"})
    assert (cookie in CookiesOf(root="/root", also=also)) is of_root
    assert (cookie in CookiesOf(root="/root", name="Build", also=also)) is of_build


def test_the_cookies_of_the_root_directory_itself_are_known() -> None:
    assert "//build/a1.1.1" in CookiesOf(root="/")
    assert "/root/build/a1.1.1" not in CookiesOf(root="/")


@pytest.mark.parametrize(("memory", "place"), [(2048, (1400, 1500)), (0, None)])
def test_the_place_of_an_environment_is_known_of_what_has_memory(
    memory: int, place: tuple[int, int] | None
) -> None:
    fields = ["S"] + ["1"] * 19 + [str(memory)] + ["1"] * 26 + ["1400", "1500", "0"]
    assert environment_range(f"42 (a) b) {' '.join(fields)}\n".encode()) == place


def test_a_stat_file_without_the_place_of_the_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="the place of its environment"):
        environment_range(b"42 (bash) S" + TAIL)


def test_the_line_of_a_process_ends_where_nothing_is_known() -> None:
    def process(pid: int, parent: int) -> ProcessInfo:
        return ProcessInfo(
            pid=pid, name="x", state="S", session=1, threads=1, start_time=1, parent=parent
        )

    known = {
        each.pid: each for each in (process(1, 0), process(5, 1), process(9, 5), process(7, 5))
    }
    assert with_ancestors(9, known) == {9, 5, 1}
    assert with_ancestors(8, known) == set()
    assert with_ancestors(3, {3: process(3, 3)}) == {3}
