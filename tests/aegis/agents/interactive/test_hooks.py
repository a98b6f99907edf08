"""Hooks of Claude Code: its settings, and events on their way to the daemon."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from aegis.agents.interactive import hook_sender
from aegis.agents.interactive.hooks import (
    EVENTS,
    hook_socket,
    next_hook,
    takes_hooks,
    with_hooks,
    write_settings,
)

GUARD_S = 60.0


@pytest.mark.parametrize(
    "cmd",
    [
        "claude",
        "claude --model opus",
        "  claude 'fix it'",
        "/usr/local/bin/claude",
        "~/.local/bin/claude -c",
        "claude | tee log",
    ],
)
def test_claude_code_gets_settings_behind_its_name(cmd: str) -> None:
    program, _, rest = cmd.strip().partition(" ")
    expected = f"{program} --settings '/a b/hooks.json'{' ' if rest else ''}{rest}"
    assert with_hooks(cmd, Path("/a b")) == expected


@pytest.mark.parametrize(
    "cmd",
    [
        "codex",
        "claude-code",
        "claudette",
        "echo claude",
        "claude --settings mine.json",
        "env X=1 claude",
        "bash -c claude",
        "./claude.sh",
    ],
)
def test_other_commands_stay_as_they_are(cmd: str) -> None:
    assert with_hooks(cmd, Path("/a")) == cmd


@pytest.mark.parametrize("name", ["\udcff", "new\nline", "\x1b[31m"])
def test_a_directory_that_no_command_can_name_has_no_hooks(name: str) -> None:
    assert not takes_hooks("claude", Path("/tmp") / name)


def test_the_settings_name_every_event_and_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "agent"
    write_settings(directory)
    write_settings(directory)
    file = directory / "hooks.json"
    hooks = json.loads(file.read_text())["hooks"]
    assert set(hooks) == set(EVENTS)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in directory.iterdir()] == ["hooks.json"]


def send(directory: Path, text: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the hook command as Claude Code does: by a shell, with the event on standard input."""
    write_settings(directory)
    hooks = json.loads((directory / "hooks.json").read_text())["hooks"]
    command = hooks["Stop"][0]["hooks"][0]["command"]
    return subprocess.run(
        ["/bin/sh", "-c", command], input=text, capture_output=True, env={}, check=False, timeout=60
    )


LONG = "directory-" * 12
"""Longer than the path of a socket may be."""


async def test_an_event_reaches_the_daemon_also_from_a_long_path_with_blanks(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "a b" / LONG
    write_settings(directory)
    with hook_socket(directory) as receiver, trio.fail_after(GUARD_S):
        event = {
            "hook_event_name": "PermissionRequest",
            "session_id": "s1",
            "tool_name": "Bash",
            "tool_input": {"command": "x" * 10_000_000, "deep": [[[[[[1]]]]]]},
            "cwd": "/secret",
        }
        done = await trio.to_thread.run_sync(send, directory, json.dumps(event).encode())
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        hook = await next_hook(receiver)
    assert (hook.session, hook.tool) == ("s1", "Bash")
    assert hook.need is not None
    assert hook.need.text.startswith("Bash: xxx")
    assert not (directory / "hooks").exists()


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"hook_event_name": 7}']
)
def test_a_malformed_event_fails_nothing(tmp_path: Path, text: bytes) -> None:
    done = send(tmp_path, text)
    assert done.returncode == 0


def test_without_a_daemon_the_hook_returns_at_once(tmp_path: Path) -> None:
    done = send(tmp_path, b'{"hook_event_name": "Stop", "session_id": "s"}')
    assert (done.returncode, done.stderr) == (0, b"")


async def test_a_daemon_that_does_not_read_delays_no_agent(tmp_path: Path) -> None:
    with hook_socket(tmp_path):
        for _ in range(2000):  # more than a socket holds
            try:
                hook_sender.send(str(tmp_path), b"{}" * 1000)
            except BlockingIOError:
                break
        else:
            pytest.fail("the socket took everything")


async def test_events_that_are_no_hooks_are_skipped(tmp_path: Path) -> None:
    with hook_socket(tmp_path) as receiver, trio.fail_after(GUARD_S):
        for data in (b"junk", b"[1]", b"", b'{"hook_event_name": "Stop", "session_id": "s"}'):
            hook_sender.send(str(tmp_path), data)
        assert (await next_hook(receiver)).kind == "rests"


async def test_the_socket_is_for_its_owner_and_replaces_one_of_a_killed_daemon(
    tmp_path: Path,
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
        left.bind(str(tmp_path / "hooks"))
    with hook_socket(tmp_path) as receiver:
        mode = stat.S_IMODE((tmp_path / "hooks").stat().st_mode)
        assert mode == 0o600
        hook_sender.send(str(tmp_path), b'{"hook_event_name": "Stop"}')
        with trio.fail_after(GUARD_S):
            await next_hook(receiver)


def test_the_sender_needs_nothing_but_the_standard_library() -> None:
    script = "import sys; import hook_sender; print(sorted(m for m in sys.modules if 'aegis' in m))"
    directory = os.path.dirname(hook_sender.__file__)
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.append({directory!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
