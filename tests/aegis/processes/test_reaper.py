"""Real processes that try to stay."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio

from aegis.processes import os_processes
from aegis.processes.os_processes import OsProcessHost, process_of
from aegis.processes.process_table import CookiesOf
from aegis.processes.pty import PtyProcess, open_pty_process
from aegis.processes.reaper import (
    ROUNDS,
    Round,
    end_processes,
    find_processes,
    is_reused,
)

pytestmark = [pytest.mark.real, pytest.mark.every_python]


@pytest.fixture(autouse=True)
def _execs_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a process may stand within its exec for longer than a scan waits."""
    monkeypatch.setattr(os_processes, "EXEC_S", 10.0)


@attrs.frozen
class Terminal:
    """A bash with a cookie, and a directory into which its children write their pids."""

    process: PtyProcess
    cookie: str
    directory: Path

    async def leave(self, command: str) -> int:
        """Start ``command`` in the shell; gives the pid that it wrote to ``$PIDFILE``."""
        path = self.directory / secrets.token_hex(4)
        os.mkfifo(path)
        await self.process.write(f"PIDFILE='{path}'; export PIDFILE; {command}\r".encode())
        with trio.fail_after(60):
            return int(await trio.Path(path).read_text())


@pytest.fixture
async def terminal(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Terminal]:
    cookie = f"{tmp_path}/build/{secrets.token_hex(4)}"
    env = {"PATH": os.environ["PATH"], "TERM": "xterm", "AEGIS_TERMINAL": cookie}
    process = await open_pty_process(
        ["bash", "--norc", "-i"], cwd=str(tmp_path), env=env, rows=24, cols=80
    )

    async def read() -> None:
        while await process.read():
            pass

    nursery.start_soon(read)
    yield Terminal(process, cookie, tmp_path)
    nursery.cancel_scope.cancel()
    process.close()
    with trio.CancelScope(shield=True):
        assert await end_processes([process.pid], [cookie], PATIENT) == []
        await process.wait()


PATIENT = (*ROUNDS, Round(signal.SIGKILL, 60.0), Round(signal.SIGKILL, 60.0))
"""The kernel of a busy machine may be late to end what was killed, and each look to see a fork."""

SLEEPER = "echo $$ >$PIDFILE; exec sleep 1000"
STUBBORN = (
    "import os, signal, time; [signal.signal(s, signal.SIG_IGN) for s in ({signals})];"
    " open(os.environ['PIDFILE'], 'w').write(str(os.getpid())); time.sleep(1000)"
)


def python(signals: str, before: str = "") -> str:
    return f'{before}{sys.executable} -c "{STUBBORN.format(signals=signals)}"'


CHILDREN = {
    "in front": f"sh -c '{SLEEPER}'",
    "in the background": f"sh -c '{SLEEPER}' &",
    "nohup": f"nohup sh -c '{SLEEPER}' >/dev/null 2>&1 &",
    "disown": f"sh -c '{SLEEPER}' & disown",
    "setsid": f"setsid sh -c '{SLEEPER}' &",
    "setsid and forked away": f"(setsid sh -c '{SLEEPER}' >/dev/null 2>&1 &)",
    "no environment": "env -i PIDFILE=$PIDFILE /bin/sh -c 'echo $$ >$PIDFILE; exec sleep 1000' &",
    "stopped": "sh -c 'kill -STOP $$; exec sleep 1000' &"
    " until grep -q '^State:.T' /proc/$!/status; do sleep 0.01; done; echo $! >$PIDFILE",
    "ignores HUP": python("signal.SIGHUP,") + " &",
    "ignores HUP and TERM": python("signal.SIGHUP, signal.SIGTERM") + " &",
    "ignores all in a session of its own": python(
        "signal.SIGHUP, signal.SIGTERM, signal.SIGINT", "setsid "
    )
    + " &",
}


@pytest.mark.parametrize("kind", CHILDREN)
async def test_trap_31_every_process_of_a_shell_is_found_and_ended(
    terminal: Terminal, kind: str
) -> None:
    pid = await terminal.leave(CHILDREN[kind])
    sids, cookies = [terminal.process.pid], [terminal.cookie]
    found = {process.pid for process in find_processes(sids, cookies)}
    assert {pid, terminal.process.pid} <= found
    with trio.fail_after(60):
        assert await end_processes(sids, cookies, PATIENT) == []
    assert find_processes(sids, cookies) == []
    assert process_of(pid) is None or not process_of(pid).is_alive  # type: ignore[union-attr]
    with trio.fail_after(60):
        assert await terminal.process.wait() == -signal.SIGHUP


async def test_a_process_in_a_new_session_is_found_by_the_cookie_alone(terminal: Terminal) -> None:
    pid = await terminal.leave(CHILDREN["setsid"])
    assert pid not in {each.pid for each in find_processes([terminal.process.pid], [])}
    assert pid in {each.pid for each in find_processes([], [terminal.cookie])}


async def test_a_process_without_environment_is_found_by_the_session_alone(
    terminal: Terminal,
) -> None:
    pid = await terminal.leave(CHILDREN["no environment"])
    assert pid not in {each.pid for each in find_processes([], [terminal.cookie])}
    assert pid in {each.pid for each in find_processes([terminal.process.pid], [])}


@pytest.mark.long
@pytest.mark.one_python
async def test_a_process_is_found_by_its_cookie_while_it_becomes_another_program(
    terminal: Terminal,
) -> None:
    # Within an exec a process shows no environment: of some thousand looks dozens fell into one.
    again = 'exec sh -c "$0" "$0"'
    pid = await terminal.leave(f"""setsid sh -c 'echo $$ > "$PIDFILE"; eval "$0"' '{again}' &""")
    for _ in range(1000):
        assert pid in {each.pid for each in find_processes([], [terminal.cookie])}


async def test_other_terminals_and_this_process_are_left_alone(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_processes([], []) == []
    assert find_processes([], [terminal.cookie + "x", terminal.cookie[:-1], ""]) == []
    own_session = {each.pid for each in find_processes([os.getsid(0)], [])}
    assert os.getpid() not in own_session
    assert await end_processes([], [terminal.cookie + "x"]) == []
    assert process_of(terminal.process.pid) is not None


async def test_a_zombie_is_not_found_and_left_to_its_parent(terminal: Terminal) -> None:
    with trio.fail_after(60):
        # By its cookie too: it may not lead its session yet.
        await end_processes([terminal.process.pid], [terminal.cookie], PATIENT)
        assert find_processes([terminal.process.pid], [terminal.cookie]) == []
        # Mostly by the first signal; a shell that is still starting may wait for a later one.
        ended_by = -await terminal.process.wait()
        assert ended_by in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL)


async def test_what_does_not_end_is_named(terminal: Terminal) -> None:
    pid = await terminal.leave(python("signal.SIGHUP,") + " &")
    # The shell would end by the hang-up too, on a busy machine after its time.
    os.kill(terminal.process.pid, signal.SIGKILL)
    with trio.fail_after(60):
        await terminal.process.wait()
    only_hang_up = [Round(signal.SIGHUP, 0.1)]
    left = await end_processes([terminal.process.pid], [terminal.cookie], only_hang_up)
    assert [each.pid for each in left] == [pid]
    assert str(left[0]) == f"{left[0].name} (pid {pid})"


async def test_what_is_forked_meanwhile_is_ended_too(terminal: Terminal, tmp_path: Path) -> None:
    # Answers HUP and TERM with a child that does the same.
    script = tmp_path / "hydra.sh"
    script.write_text(
        "trap 'sh \"$0\" & wait' HUP TERM\n"
        '[ -p "$PIDFILE" ] && echo $$ >"$PIDFILE" && rm "$PIDFILE"\n'
        "while :; do sleep 0.01; done\n"
    )
    await terminal.leave(f"setsid sh '{script}' &")
    with trio.fail_after(60):
        assert await end_processes([terminal.process.pid], [terminal.cookie], PATIENT) == []


async def test_a_reused_pid_is_never_hit(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aegis.processes import reaper

    sent: list[int] = []
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda pidfd, signum: sent.append(signum))
    real = process_of(terminal.process.pid)
    assert real is not None
    stale = attrs.evolve(real, start_time=real.start_time - 1)
    await reaper._signal_and_wait(OsProcessHost(), [stale], Round(signal.SIGTERM, 0.05))
    assert sent == []
    await reaper._signal_and_wait(OsProcessHost(), [real], Round(signal.SIGTERM, 0.05))
    assert sent == [signal.SIGTERM, signal.SIGCONT]


async def test_a_session_id_that_was_given_to_others_is_known_by_its_leader(
    terminal: Terminal,
) -> None:
    leader = process_of(terminal.process.pid)
    assert leader is not None
    assert not is_reused(OsProcessHost(), leader.pid, leader.start_time)
    assert is_reused(OsProcessHost(), leader.pid, leader.start_time - 1)
    assert process_of(2**22 + 1) is None
    assert not is_reused(OsProcessHost(), 2**22 + 1, 5)


async def test_nothing_of_ours_stays_open(terminal: Terminal) -> None:
    await terminal.leave(CHILDREN["nohup"])
    before = set(os.listdir("/proc/self/fd"))
    await end_processes([terminal.process.pid], [terminal.cookie])
    assert set(os.listdir("/proc/self/fd")) <= before


async def test_without_a_free_descriptor_a_process_is_signalled_by_its_checked_pid(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aegis.processes import reaper

    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    pid = await terminal.leave(python("signal.SIGHUP,") + " &")
    stale = process_of(pid)
    assert stale is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", refuse)
        sent: list[int] = []
        with monkeypatch.context() as counting:
            counting.setattr(os, "kill", lambda pid, signum: sent.append(pid))
            other = attrs.evolve(stale, start_time=stale.start_time - 1)
            await reaper._signal_and_wait(OsProcessHost(), [other], Round(signal.SIGTERM, 0.05))
        assert sent == []
        # No end is reported here, so that each round takes all of its time.
        rounds = [*ROUNDS, *[Round(signal.SIGKILL, 1.0)] * 20]
        with trio.fail_after(60):
            assert await end_processes([terminal.process.pid], [terminal.cookie], rounds) == []


async def test_this_process_and_its_ancestors_are_never_ended(terminal: Terminal) -> None:
    # A child that looks finds itself, the shell and this process in its own line, and spares them.
    looks = (
        "import os; from aegis.processes.reaper import find_processes;"
        f" found = find_processes([{terminal.process.pid}], ['{terminal.cookie}']);"
        " print(*sorted(p.name for p in found), file=open(os.environ['PIDFILE'], 'w'))"
    )
    path = terminal.directory / "found"
    os.mkfifo(path)
    bystander = await terminal.leave(CHILDREN["in the background"])
    with trio.fail_after(60):
        while str(process_of(bystander)) != f"sleep (pid {bystander})":  # noqa: ASYNC110
            await trio.sleep(0.01)
    line = f"PIDFILE='{path}' PYTHONPATH='{Path.cwd()}' {sys.executable} -c \"{looks}\"\r"
    await terminal.process.write(line.encode())
    with trio.fail_after(60):
        found = await trio.Path(path).read_text()
    assert found.split() == ["sleep"]
    own = {each.pid for each in find_processes([], [terminal.cookie])}
    assert {bystander, terminal.process.pid} <= own
    assert not {os.getpid(), os.getppid()} & {each.pid for each in find_processes(range(2**22), [])}


async def test_every_life_of_a_terminal_is_found_by_its_name(terminal: Terminal) -> None:
    pid = await terminal.leave(CHILDREN["setsid"])
    root = str(terminal.directory)
    assert pid in {each.pid for each in find_processes([], CookiesOf(root=root, name="BUILD"))}
    assert pid in {each.pid for each in find_processes([], CookiesOf(root=root))}
    assert find_processes([], CookiesOf(root=root, name="buil")) == []
    assert find_processes([], CookiesOf(root=str(terminal.directory.parent))) == []
