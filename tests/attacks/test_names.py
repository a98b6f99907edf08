"""Names and paths that would lead elsewhere: none leaves its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.raw import session_path
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

NAMES = [
    "..",
    ".",
    "../escaped",
    "../../escaped",
    "a/../../escaped",
    "/tmp/escaped",
    "a/b",
    "a\\b",
    "a\0b",
    "\0",
    "",
    " ",
    "a b",
    "a\n",
    "-rf",
    ".hidden",
    "~",
    "$HOME",
    "$(touch escaped)",
    "`touch escaped`",
    "a;touch escaped",
    "%2e%2e%2fescaped",
    "x" * 65,
    "x" * 100_000,
    "\u0430dmin",  # a Cyrillic letter that looks like an a
    "ａ",  # noqa: RUF001 -- a full-width letter
    "a\u200b",
    "a\u202eb",
    "\ud800",
    "a\u0301",
    "con:",
    "\x1b]0;title\x07",
]

BY_NAME: list[tuple[str, dict[str, object]]] = [
    ("term_spawn", {}),
    ("term_run", {"cmd": "touch escaped"}),
    ("term_keys", {"keys": "x"}),
    ("term_read", {}),
    ("term_output", {}),
    ("term_screen", {}),
    ("term_wait", {}),
    ("term_signal", {"signal": "INT"}),
    ("term_resize", {"cols": 80, "rows": 24}),
    ("term_subscribe", {}),
    ("term_unsubscribe", {}),
    ("term_close", {"purge": True}),
]


@pytest.fixture
def untouched(daemon: DaemonProcess) -> set[Path]:
    """All that is outside of the daemon's state."""
    return outside(daemon)


def outside(daemon: DaemonProcess) -> set[Path]:
    state = daemon.state.directory
    return {each for each in daemon.root.parent.rglob("*") if state not in each.parents}


def refusal_of(daemon: DaemonProcess, asked: str, /, **arguments: object) -> str:
    error = daemon.refusal(asked, **arguments)
    assert "\x1b" not in str(error)
    return error.code


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:20]))
def test_no_name_leads_out_of_its_directory(
    daemon: DaemonProcess, name: str, untouched: set[Path]
) -> None:
    for command, arguments in BY_NAME:
        assert refusal_of(daemon, command, name=name, **arguments) == "invalid_request"
    for command, more in (
        ("workspace_create", {"workspace": name}),
        ("workspace_delete", {"workspace": name, "purge": True}),
        ("workspace_exec", {"workspace": name, "command": "touch escaped"}),
        ("shell_open", {"workspace": name}),
        ("session_new", {"handle": name}),
        ("session_revoke", {"handle": name}),
        ("token_rotate", {"session": name}),
        ("handoff", {"target_handle": name, "context": "x"}),
        ("inbox_read", {"from_handle": name}),
    ):
        assert refusal_of(daemon, command, **more) in ("invalid_request", "not_found")
    assert outside(daemon) == untouched
    assert daemon.call("term_list") == {"result": [], "of_agents": []}


@pytest.mark.parametrize("directory", ["/etc/passwd", "/nowhere/at/all", "a\0b", "x" * 5000])
def test_a_directory_that_is_none_is_refused(daemon: DaemonProcess, directory: str) -> None:
    """A directory is a place to begin in, not a fence: any other that is there may be given."""
    code = refusal_of(daemon, "workspace_create", workspace="w", directory=directory)
    assert code in ("invalid_request", "not_found", "storage")
    code = refusal_of(daemon, "term_spawn", name="t", cwd=directory)
    assert code in ("invalid_request", "not_found", "storage", "unavailable")
    assert daemon.call("workspace_list") == {"result": []}


def test_a_purge_deletes_a_link_and_not_what_it_leads_to(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    """Who can write there can do anything; a link made by a mistake shall still delete nothing."""
    own_daemon.start()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    own_daemon.call("term_spawn", name="first")
    link = own_daemon.state.terminals / "linked"
    link.symlink_to(precious)
    refused = own_daemon.refusal("term_spawn", name="linked")
    assert "it is a symbolic link, not a directory; move it away" in str(refused)
    own_daemon.call("term_close", name="linked", purge=True)
    assert not link.is_symlink()
    own_daemon.call("term_spawn", name="linked")
    link.rename(tmp_path / "moved")
    link.symlink_to(precious)
    own_daemon.call("term_close", name="linked", purge=True)
    assert not link.is_symlink()
    assert [each.name for each in precious.iterdir()] == ["file"]
    assert (precious / "file").read_text() == "precious"


def test_a_secret_is_no_path(daemon: DaemonProcess) -> None:
    """The secret of a session is looked up by its digest: it never names a file."""
    kept = {each.name for each in daemon.state.directory.rglob("*")}
    secret = session_path(daemon, "alice").rpartition("/")[2]
    assert not [name for name in kept if secret[:10] in name]
