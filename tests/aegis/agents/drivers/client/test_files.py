"""Text files of a session's directory: exact texts, and no way out of the directory."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest
import trio

from aegis.agents.drivers.client.files import (
    MAX_FILE_BYTES,
    MAX_TEXT_BYTES,
    SessionFiles,
    read_text,
    write_text,
)
from aegis.errors import AegisError, Forbidden, InvalidRequest, NotFound, Unavailable

GUARD_S = 60.0

TEXT = "one\r\ntwo\n\nfour"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory beside a file that is not the session's."""
    directory = tmp_path / "work"
    directory.mkdir()
    (tmp_path / "secret").write_text("secret")
    return directory


def read(root: Path, path: str | Path, line: int = 1, limit: int | None = None) -> str:
    return read_text(str(root), str(root / path), line=line, limit=limit)


def write(root: Path, path: str | Path, text: str = "new") -> None:
    write_text(str(root), str(root / path), text=text)


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (1, None, TEXT),
        (0, None, TEXT),
        (2, None, "two\n\nfour"),
        (2, 1, "two\n"),
        (1, 2, "one\r\ntwo\n"),
        (3, 1, "\n"),
        (4, 1, "four"),
        (4, 9, "four"),
        (5, None, ""),
        (2, 0, ""),
        (2**63, 2**63, ""),
        (1, 2**64, TEXT),
    ],
)
def test_lines_are_read_exactly(root: Path, line: int, limit: int | None, expected: str) -> None:
    (root / "a").write_bytes(TEXT.encode())
    assert read(root, "a", line, limit) == expected


def test_a_text_is_written_and_read_back_byte_for_byte(root: Path) -> None:
    write(root, "a", "ä\r\n\x00\ud7ff")
    assert (root / "a").read_bytes() == "ä\r\n\x00\ud7ff".encode()
    assert read(root, "a") == "ä\r\n\x00\ud7ff"
    assert os.listdir(root) == ["a"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4755])
def test_permission_bits_are_kept_but_no_rights_of_another_user(root: Path, mode: int) -> None:
    (root / "a").write_text("old")
    (root / "a").chmod(mode)
    write(root, "a")
    assert (root / "a").read_text() == "new"
    assert stat.S_IMODE((root / "a").stat().st_mode) == mode & 0o777


def test_a_new_file_gets_the_usual_permission_bits(root: Path) -> None:
    write(root, "a")
    (root / "b").touch()
    assert (root / "a").stat().st_mode == (root / "b").stat().st_mode


OUTSIDE = ["../secret", "a/../../secret", "link", "directory/secret", "loop", "absolute"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_directory(root: Path, path: str) -> None:
    (root / "a").mkdir()
    (root / "link").symlink_to("../secret")
    (root / "directory").symlink_to("..")
    (root / "absolute").symlink_to(root.parent / "secret")
    (root / "loop").symlink_to("loop")
    for act in (read, write):
        with pytest.raises((Forbidden, InvalidRequest)):
            act(root, path)
    assert (root.parent / "secret").read_text() == "secret"
    assert sorted(os.listdir(root.parent)) == ["secret", "work"]


def test_a_directory_that_begins_with_the_same_name_is_another_one(root: Path) -> None:
    (root.parent / "work2").mkdir()
    (root.parent / "work2" / "a").write_text("x")
    with pytest.raises(Forbidden, match="is not inside the session's directory"):
        read(root, root.parent / "work2" / "a")


@pytest.mark.parametrize("target", ["b/c", "./b/../b/c", "{root}/b/c"])
def test_a_link_that_stays_inside_is_followed(root: Path, target: str) -> None:
    (root / "b").mkdir()
    (root / "b" / "c").write_text("old")
    (root / "a").symlink_to(target.format(root=root))
    assert read(root, "a") == "old"
    write(root, "a")
    assert (root / "a").is_symlink()
    assert (root / "b" / "c").read_text() == "new"


def test_the_directory_may_be_named_by_a_link_or_by_its_real_path(root: Path) -> None:
    (root / "a").write_text("x")
    named = root.parent / "named"
    named.symlink_to(root)
    assert read_text(str(named), str(named / "a")) == "x"
    assert read_text(str(named), str(root / "a")) == "x"


def test_a_link_that_names_no_file_yet_is_written_through(root: Path) -> None:
    (root / "a").symlink_to("b")
    write(root, "a")
    assert (root / "b").read_text() == "new"


def test_files_of_the_daemon_are_refused(root: Path) -> None:
    (root / ".aegis").mkdir()
    (root / ".aegis" / "keys.json").write_text("{}")
    for act in (read, write):
        with pytest.raises(Forbidden, match="belongs to the daemon"):
            act(root, ".aegis/keys.json")


@pytest.mark.parametrize("path", ["fifo", "directory", "", "missing/a", "file/a", "\udcff\udcfe/x"])
def test_what_is_no_file_is_refused_without_blocking(root: Path, path: str) -> None:
    os.mkfifo(root / "fifo")
    (root / "directory").mkdir()
    (root / "file").write_text("x")
    for act in (read, write):
        with pytest.raises((InvalidRequest, NotFound)):
            act(root, path)
    assert (root / "fifo").is_fifo()


def test_a_device_is_refused(root: Path) -> None:
    with pytest.raises(InvalidRequest, match="is not a regular file"):
        read_text("/dev", "/dev/null")
    with pytest.raises(InvalidRequest, match="is not a regular file"):
        write_text("/dev", "/dev/null", text="x")


def test_a_name_that_is_not_utf8_can_be_reached_through_a_link_only(root: Path) -> None:
    (root / "name\udcff").write_text("x")
    (root / "a").symlink_to("name\udcff")
    assert read(root, "a") == "x"
    with pytest.raises(NotFound, match="does not exist"):
        read(root, "name\ufffd")


def test_a_missing_file_is_named(root: Path) -> None:
    with pytest.raises(NotFound, match=f"'{root}/gone' does not exist"):
        read(root, "gone")


def test_a_file_that_is_no_text_is_refused(root: Path) -> None:
    (root / "a").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidRequest, match="is not a text in UTF-8"):
        read(root, "a")


def test_a_large_file_is_read_in_parts_and_a_huge_one_not_at_all(root: Path) -> None:
    (root / "a").write_bytes(b"x\n" * MAX_TEXT_BYTES)
    with pytest.raises(InvalidRequest, match="read a smaller part"):
        read(root, "a")
    assert read(root, "a", MAX_TEXT_BYTES, 9) == "x\n"
    os.truncate(root / "a", MAX_FILE_BYTES + 1)
    for act in (read, write):
        with pytest.raises(InvalidRequest, match="is larger than"):
            act(root, "a")


def test_a_large_text_is_not_written(root: Path) -> None:
    with pytest.raises(InvalidRequest, match="more than"):
        write(root, "a", "x" * (MAX_TEXT_BYTES + 1))
    assert os.listdir(root) == []


def test_a_file_that_nobody_may_write_is_not_replaced(root: Path) -> None:
    (root / "a").write_text("old")
    (root / "a").chmod(0o444)
    with pytest.raises(Forbidden, match="read-only"):
        write(root, "a")
    assert (root / "a").read_text() == "old"


def test_a_write_that_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="No space left"):
        write(root, "a")
    assert [(each, (root / each).read_text()) for each in os.listdir(root)] == [("a", "old")]


def test_a_link_that_is_exchanged_all_the_time_leads_nowhere_else(root: Path) -> None:
    """A directory becomes a link to the outside, and back, while it is used."""
    (root / "inside").mkdir()
    (root / "outside").symlink_to("..")
    (root / "inside" / "secret").write_text("mine")
    is_over = threading.Event()

    def exchange() -> None:
        while not is_over.is_set():
            for name in ("inside", "outside"):
                (root / name).rename(root / "way")
                (root / "way").rename(root / name)

    thread = threading.Thread(target=exchange)
    thread.start()
    seen: set[str] = set()
    limit = time.monotonic() + GUARD_S
    try:
        while not {"mine", "Forbidden"} <= seen and time.monotonic() < limit:
            try:
                seen.add(read(root, "way/secret"))
                write(root, "way/secret", "mine")
            except AegisError as error:
                seen.add(type(error).__name__)
    finally:
        is_over.set()
        thread.join()
    assert (root.parent / "secret").read_text() == "secret"
    assert "secret" not in seen
    assert {"mine", "Forbidden"} <= seen


async def test_methods_are_served_with_exact_parameters(root: Path) -> None:
    files = SessionFiles(str(root))
    path = str(root / "a")
    assert await files.serve("fs/write_text_file", {"path": path, "content": "a\nb\n"}) == {}
    parameters = {"path": path, "line": 2, "limit": 1}
    assert await files.serve("fs/read_text_file", parameters) == {"content": "b\n"}
    nothing = {"path": path, "line": None, "limit": None}
    assert await files.serve("fs/read_text_file", nothing) == {"content": "a\nb\n"}


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("fs/read_text_file", {"path": "a"}),
        ("fs/read_text_file", {"path": 3}),
        ("fs/read_text_file", {"path": "/" + "x" * 5000}),
        ("fs/read_text_file", {"path": "/a\0b"}),
        ("fs/read_text_file", {"line": -1}),
        ("fs/read_text_file", {"line": True}),
        ("fs/read_text_file", {"limit": 1.5}),
        ("fs/read_text_file", {"limit": "1"}),
        ("fs/write_text_file", {"content": None}),
        ("terminal/create", {}),
    ],
)
async def test_bad_parameters_are_one_sentence(
    root: Path, method: str, change: dict[str, object]
) -> None:
    (root / "a").write_text("x")
    files = SessionFiles(str(root))
    with pytest.raises((InvalidRequest, Unavailable)) as caught:
        await files.serve(method, {"path": str(root / "a"), **change})
    assert "\n" not in str(caught.value)


async def test_an_error_of_the_disk_is_one_sentence(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", fail)
    (root / "a").write_text("old")
    parameters = {"path": str(root / "a"), "content": "x"}
    with pytest.raises(Unavailable, match="cannot be used: No space left on device"):
        await SessionFiles(str(root)).serve("fs/write_text_file", parameters)


async def test_a_call_that_hangs_does_not_hold_up_the_end_of_its_driver(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    entered = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def hang(*_: object, **__: object) -> int:
        token.run_sync_soon(entered.set)
        release.wait(60)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os.path, "realpath", hang)
    try:
        async with trio.open_nursery() as nursery:
            parameters = {"path": str(root / "a")}
            nursery.start_soon(SessionFiles(str(root)).serve, "fs/read_text_file", parameters)
            await entered.wait()
            nursery.cancel_scope.cancel()
    finally:
        release.set()
