"""The file itself: whose it may be, what it may be, and whether its shell is there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from aegis.configuration.file import read_configuration, warnings_of
from aegis.configuration.problems import BadConfiguration
from aegis.configuration.sections import MAX_BYTES, Configuration, Parsed
from aegis.configuration.terminals import TerminalsSection

ME = os.geteuid()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".aegis.yaml"


def refusal(path: Path) -> str:
    with pytest.raises(BadConfiguration) as caught:
        read_configuration(path)
    [line] = caught.value.lines()
    return line


def test_without_a_file_the_defaults_hold(path: Path) -> None:
    assert read_configuration(path) == Parsed()


def test_a_problem_names_the_file(path: Path) -> None:
    path.write_text("terminals:\n  cols: x\n")
    assert refusal(path) == (
        f"{path} line 2: terminals.cols must be a whole number from 2 to 1000, not 'x'"
    )


def test_it_is_still_known_how_many_problems_there_were(path: Path) -> None:
    path.write_text("".join(f"k{number}: 1\n" for number in range(12)))
    with pytest.raises(BadConfiguration) as caught:
        read_configuration(path)
    assert (len(caught.value.problems), caught.value.more) == (5, 7)
    assert caught.value.lines()[-1] == f"{path}: and 7 more like these"


def test_a_link_to_a_file_is_followed_and_one_to_nothing_refused(path: Path) -> None:
    target = path.with_name("elsewhere.yaml")
    path.symlink_to(target)
    assert refusal(path) == f"{path}: is a link to a missing file: remove it"
    target.write_text("terminals: {cols: 90}")
    assert read_configuration(path).configuration.terminals.cols == 90


def test_a_directory_is_no_configuration(path: Path) -> None:
    path.mkdir()
    assert refusal(path) == f"{path}: is not a regular file: replace it by one"


def test_a_fifo_that_nobody_writes_to_does_not_hold_it_up(path: Path) -> None:
    os.mkfifo(path)
    assert refusal(path) == f"{path}: is not a regular file: replace it by one"


def test_a_device_without_end_is_not_read(path: Path) -> None:
    path.symlink_to("/dev/zero")
    assert refusal(path) == f"{path}: is not a regular file: replace it by one"


def test_a_socket_is_told_as_the_system_tells_it(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        assert refusal(path) == f"{path}: cannot be read: No such device or address"


def test_a_huge_file_is_refused_without_being_read_whole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(path) == f"{path}: is longer than {MAX_BYTES} bytes, the maximum"


@pytest.mark.skipif(ME == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(path: Path) -> None:
    path.touch(mode=0o000)
    assert refusal(path) == f"{path}: cannot be read: Permission denied"


@pytest.mark.parametrize(("mode", "is_good"), [(0o600, True), (0o664, True), (0o646, False)])
def test_what_everybody_may_write_is_refused(path: Path, mode: int, is_good: bool) -> None:
    path.touch()
    path.chmod(mode)
    if is_good:
        assert read_configuration(path) == Parsed()
    else:
        assert refusal(path) == (
            f"{path}: is writable by everybody, who could choose the programs that you "
            "run: chmod o-w"
        )


@pytest.mark.skipif(ME != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_refused(path: Path) -> None:
    path.touch()
    os.chown(path, 4242, -1)
    assert refusal(path).startswith(f"{path}: belongs to user 4242, who could choose the programs")


@pytest.mark.parametrize(
    ("owner", "runs", "is_good"), [(0, 1000, True), (1000, 1000, True), (1001, 1000, False)]
)
def test_it_belongs_to_the_user_or_to_root(
    path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, runs: int, is_good: bool
) -> None:
    path.touch()
    found = os.stat(path)

    def stat_of(opened: int) -> os.stat_result:
        return os.stat_result([*found[:4], owner, *found[5:]])

    monkeypatch.setattr("aegis.configuration.file.os.fstat", stat_of)
    monkeypatch.setattr("aegis.configuration.file.os.geteuid", lambda: runs)
    if is_good:
        assert read_configuration(path) == Parsed()
    else:
        assert f"belongs to user {owner}" in refusal(path)


@pytest.mark.parametrize("shell", [None, "sh", "/bin/sh"])
def test_a_shell_that_is_there_is_no_warning(shell: str | None) -> None:
    assert list(warnings_of(Configuration(terminals=TerminalsSection(shell=shell)))) == []


@pytest.mark.parametrize("shell", ["no-such-shell", "/no/such/shell", "/etc", "/etc/passwd"])
def test_a_shell_that_is_not_there_is_a_warning(shell: str) -> None:
    [sentence] = warnings_of(Configuration(terminals=TerminalsSection(shell=shell)))
    assert sentence.startswith(f"terminals.shell {shell!r} is not an executable program")


@pytest.mark.parametrize(("text", "loads"), [(None, False), ("", False), ("terminals: {}", True)])
def test_the_yaml_reader_is_loaded_only_for_a_file_that_says_something(
    path: Path, text: str | None, loads: bool
) -> None:
    if text is not None:
        path.write_text(text)
    code = (
        "import sys; from pathlib import Path\n"
        "from aegis.configuration.file import read_configuration\n"
        "import aegis.app\n"
        "read_configuration(Path(sys.argv[1])); print('yaml' in sys.modules)\n"
    )
    words = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout == f"{loads}\n"
