"""Keys are where they belong and nowhere else; files are for their owner, whatever the umask."""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.servers.access import auth
from tests.attacks.raw import bearer, frame, mcp, opened_session, session_path, tcp
from tests.e2e.harness import DaemonProcess, LiveTerminal

pytestmark = pytest.mark.real

KEY_FILES = {"keys.json", "endpoint.json"}


@pytest.fixture
def busy_daemon(own_daemon: DaemonProcess) -> DaemonProcess:
    """One that logs all it can, and on which everything was done that takes a key."""
    before = os.umask(0)
    try:
        own_daemon.start("--port", "0", "--log-level", "debug", "--debug")
    finally:
        os.umask(before)
    return own_daemon


def use_every_key(daemon: DaemonProcess) -> list[str]:
    """Come in with each kind of key, rightly and wrongly; gives all keys there were."""
    path = session_path(daemon, "alice")
    secrets = [daemon.endpoint.token, path.rpartition("/")[2]]
    sessions = [opened_session(daemon, path), opened_session(daemon, "/mcp", **bearer(daemon))]
    for headers in (bearer(daemon), {}, {"host": "evil.example", **bearer(daemon)}):
        for target in ("/mcp", path, f"{path}/", f"/mcp?token={daemon.endpoint.token}", f"{path}x"):
            with tcp(daemon) as raw:
                mcp(raw, target, "tools/list", {}, **headers)
    for key in ("token", "session"):
        for secret in secrets:
            with tcp(daemon) as raw:
                raw.upgrade()
                raw.send_frame({"type": "hello", "version": 1, key: secret})
                raw.send_frame({"type": secret, secret: secret})
                raw.send(frame(f'{{"{secret}'.encode()))
                raw.frame()
    with tcp(daemon) as raw:
        raw.send(f"GET {path} HTTP/9.9\r\nAuthorization: {secrets[0]}\r\n\r\n".encode())
        raw.rest()
    terminal = LiveTerminal(daemon, "t", daemon.call("term_spawn", name="t"))
    terminal.run("env; cat /proc/$PPID/cmdline")
    daemon.call("workspace_create", workspace="w")
    daemon.call("workspace_exec", workspace="w", command="env")
    for words in (
        ["status"],
        ["session", "list"],
        ["term", "list"],
        ["inbox", "read"],
        ["nothing"],
    ):
        done = daemon.cli(*words)
        assert not [key for key in secrets if key in done.stdout + done.stderr]
    daemon.call("token_rotate")
    daemon.call("token_rotate", session="alice")
    return [
        *secrets,
        daemon.endpoint.token,
        session_path(daemon, "alice").rpartition("/")[2],
        *sessions,
    ]


@pytest.mark.long
def test_no_key_is_in_a_log_an_argument_an_environment_or_a_file_of_others(
    busy_daemon: DaemonProcess,
) -> None:
    keys = use_every_key(busy_daemon)
    *keys, legacy, operators = keys
    places = {"the log": busy_daemon.log, "the banner": busy_daemon.banner}
    for process in processes_below(busy_daemon.process.pid):
        for what in ("cmdline", "environ"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                text = (process / what).read_bytes().decode(errors="replace")
                places[f"{what} of {process.name}"] = text
    assert len(places) > 5, "the daemon and a shell at least"
    for path in busy_daemon.root.rglob("*"):
        if path.is_file() and path.name not in KEY_FILES:
            places[str(path)] = path.read_bytes().decode(errors="replace")
    found = [place for place, text in places.items() for key in keys if key in text]
    assert found == []
    assert [each for each in (legacy, operators) if each in busy_daemon.log] == []


def processes_below(pid: int) -> Iterator[Path]:
    """The process and all that it has started."""
    yield Path(f"/proc/{pid}")
    children: list[str] = []
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has
                children += (task / "children").read_text().split()
    for child in children:
        yield from processes_below(int(child))


@pytest.mark.long
def test_every_file_is_for_its_owner_alone_under_any_umask(busy_daemon: DaemonProcess) -> None:
    use_every_key(busy_daemon)
    state = busy_daemon.state.directory
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE(state.parent.stat().st_mode) & 0o022 == 0, "nobody else puts a state there"
    open_to_others = [
        f"{path.relative_to(state)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in state.rglob("*")
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
        # Written by the shell itself, with the umask of its user, in a directory that is private.
        and not path.name.startswith("typed.")
    ]
    assert open_to_others == []
    assert stat.S_IMODE(Path(busy_daemon.endpoint.socket).stat().st_mode) == 0o600


def test_keys_are_compared_by_digest_and_in_constant_time() -> None:
    """By construction: no comparison of the file that looks keys up touches a key itself."""
    tree = ast.parse(inspect.getsource(auth.Keys))
    lookups = {
        node.name: ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("identity_of")
    }
    assert set(lookups) == {"identity_of_token", "identity_of_session"}
    assert (
        "hmac.compare_digest(_digest(token), self._table.operator)" in lookups["identity_of_token"]
    )
    assert "self._table.handles.get(_digest(secret))" in lookups["identity_of_session"]
    for text in lookups.values():
        assert "==" not in text
        assert " in " not in text


def test_what_a_key_is_compared_by_has_one_length_whatever_is_shown() -> None:
    for shown in ("", "x", "x" * 10_000_000, "\ud800", "ключ"):
        assert len(auth._digest(shown)) == 32
