"""Accounts and machines that lack what most have: a name, a home, a shell, a watch on files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import GUARD_S, PROGRAM, DaemonProcess

pytestmark = pytest.mark.real

NAMELESS = ("unshare", "--user", "--map-user=64242", "--map-group=64242")
"""As an id that is in no database, without rights beyond those of the owner of a file."""

UNWATCHED = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    *('echo 0 > /proc/sys/user/max_inotify_instances; exec "$@"', "sh"),
)
"""Where no instance of inotify is left."""


def works(*words: str) -> bool:
    return subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(
    not (works(*NAMELESS) and works(*UNWATCHED)), reason="this user may make no namespace"
)


class Lacking(DaemonProcess):
    """A daemon, and clients, that run below ``words``, without the variables ``unset``."""

    words: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()

    @property
    def program(self) -> list[str]:
        return [*self.words, str(PROGRAM)]

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: text for k, text in super().environment.items() if k not in self.unset}
        return {**kept, **self.variables}


@pytest.fixture
def lacking(tmp_path: Path) -> Iterator[Lacking]:
    daemon = Lacking(tmp_path)
    yield daemon
    daemon.hang_up()
    if daemon.is_running:
        assert daemon.stop() == 0


def doctor(daemon: DaemonProcess) -> dict[str, tuple[str, str]]:
    """The findings of the program, by subject: level and sentence."""
    found = {}
    for line in daemon.cli("doctor").stdout.splitlines():
        level, rest = line.split(maxsplit=1)
        subject, sentence = rest.split(": ", 1)
        found[subject] = level, sentence
    return found


@needs_namespaces
@pytest.mark.long
def test_an_id_without_a_name_and_without_a_home_has_terminals(lacking: Lacking) -> None:
    lacking.words, lacking.unset = NAMELESS, ("HOME",)
    lacking.start("--port", "0")
    record = lacking.terminal("t").run("id -u; whoami 2>&1; echo home=$HOME")
    assert record["stdout"].splitlines()[0] == "64242"
    assert record["stdout"].splitlines()[-1] == "home="
    assert {level for level, _ in doctor(lacking).values()} <= {"ok", "warning"}


@needs_namespaces
@pytest.mark.long
@pytest.mark.parametrize("home", ["none", "read-only"])
def test_without_a_place_for_the_key_one_sentence_says_so_at_once_and_doctor_too(
    lacking: Lacking, tmp_path: Path, home: str
) -> None:
    lacking.words, lacking.unset = NAMELESS, ("HOME", "XDG_STATE_HOME")
    sentence = "this user has no home directory: set HOME"
    if home == "read-only":
        place = tmp_path / "read-only"
        place.mkdir(mode=0o555)
        lacking.variables, sentence = {"HOME": str(place)}, f"cannot write {place}"
    refused = lacking.cli("up", "--port", "0")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"aegis-actors: {sentence}")
    assert len(refused.stderr.splitlines()) == 1
    level, said = doctor(lacking)["trust"]
    assert level == "problem"
    assert said.startswith(sentence)


@pytest.mark.long
@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false", "/no/shell"])
def test_where_shell_is_none_terminals_have_bash_and_programs_in_them_too(
    lacking: Lacking, shell: str
) -> None:
    lacking.variables = {"SHELL": shell}
    lacking.start("--port", "0")
    record = lacking.terminal("t").run("$SHELL -c 'echo $BASH_VERSION'")
    assert record["exit"] == 0
    assert record["stdout"][0].isdecimal()
    assert lacking.examine()["SHELL"].sentence.endswith("bash is used in its place")


@needs_namespaces
@pytest.mark.long
def test_an_edit_of_a_canvas_is_noticed_where_no_file_can_be_watched(lacking: Lacking) -> None:
    lacking.words = UNWATCHED
    lacking.start("--port", "0")
    plan = lacking.root / "plan.md"
    plan.write_text("# One\n\ntext\n")
    lacking.call("canvas_open", name="plan", file="plan.md")
    lacking.call("canvas_subscribe", name="plan", from_handle="ann")
    plan.write_text("# One\n\nanother text\n")
    [message] = lacking.call("inbox_wait", from_handle="ann", timeout=GUARD_S)["messages"]
    assert "another text" in message["body"]
    [line] = [line for line in lacking.log.splitlines() if "file not watched" in line]
    assert '"looks_s": 5.0' in line
    level, sentence = doctor(lacking)["inotify"]
    assert level == "warning"
    assert "every 5 s" in sentence
