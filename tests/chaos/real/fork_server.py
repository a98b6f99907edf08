"""A process that has imported the daemon and forks a daemon per request, in milliseconds.

An exec'd daemon spends most of a second of CPU on imports before it is ready. Tests that are not
about the installed program itself start their daemons here instead: one server per test process.

A request is one message with three descriptors (standard output, standard error, and the write end
of a pipe): what the child is to be, as JSON. The pipe gets the child's pid, and its exit code once
the server has reaped it.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import faulthandler
import functools
import gc
import json
import os
import random
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple

import trio

MOST_BYTES = 1 << 20

STACKS_SIGNAL = signal.SIGUSR2
"""The signal at which a forked process writes its stacks to standard error."""

GUARD_S = 60.0
"""A guard against hanging, far above what a fork takes."""


class ForkedProcess:
    """A forked daemon, with the part of ``subprocess.Popen`` that tests use."""

    def __init__(self, words: Sequence[str], stdout: IO[bytes], status: int) -> None:
        self.args = list(words)
        self.stdout: IO[bytes] | None = stdout
        self.returncode: int | None = None
        self._status = status
        self._read = b""
        self._reading = threading.Lock()  # tests wait in one thread and look in another
        if not self._wait_for_lines(1, GUARD_S):
            raise RuntimeError("the fork server did not fork")
        self.pid = int(self._read.split(b"\n")[0])

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended. Raises ``TimeoutExpired``."""
        if self.returncode is None:
            if not self._wait_for_lines(2, timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._read.split(b"\n")[1])
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signum)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait_for_lines(self, count: int, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._reading:
            while self._read.count(b"\n") < count:
                ready = select.poll()
                ready.register(self._status, select.POLLIN)
                left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
                if not ready.poll(left):
                    return False
                data = os.read(self._status, 100)
                if not data:
                    raise RuntimeError("the fork server has ended")
                self._read += data
        return True

    def __del__(self) -> None:
        os.close(self._status)


class ForkServer:
    """The client's side of a fork server."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.chaos.real.fork_server", str(theirs.fileno())],
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the process that started the tests
            )
        self._socket = ours
        self._asking = threading.Lock()

    def fork(
        self, words: Sequence[str], env: Mapping[str, str], cwd: Path, stderr: int
    ) -> ForkedProcess:
        """Fork an ``aegis-actors`` with these words; its standard output can be read."""
        output, output_end = os.pipe()
        status, status_end = os.pipe()
        request = json.dumps({"words": [*words], "env": {**env}, "cwd": str(cwd)}).encode()
        descriptors = array.array("i", [output_end, stderr, status_end])
        with self._asking:
            self._socket.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        for end in (output_end, status_end):
            os.close(end)
        return ForkedProcess(words, os.fdopen(output, "rb", buffering=0), status)

    def close(self) -> None:
        """End the server; the daemons that it forked are left alone."""
        self._socket.close()
        self._process.wait(GUARD_S)


@functools.cache
def fork_server() -> ForkServer:
    """Return the fork server of this process, started at the first call."""
    server = ForkServer()
    atexit.register(server.close)
    return server


class Request(NamedTuple):
    """The program of a child, and its descriptors."""

    words: list[str]
    env: dict[str, str]
    cwd: str
    descriptors: list[int]


def serve(connection: socket.socket) -> Request | None:
    """Fork for each request. Returns in each child, with its request, and None at the end."""
    waiting = selectors.DefaultSelector()
    waiting.register(connection, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is not connection:
                waiting.unregister(key.fileobj)
                report_end(*key.data)
                continue
            request = receive(connection)
            if request is None:
                return None
            pid = os.fork()
            if pid == 0:
                waiting.close()
                return request
            *standard, status = request.descriptors
            for each in standard:
                os.close(each)
            os.write(status, b"%d\n" % pid)
            pidfd = os.pidfd_open(pid)
            waiting.register(pidfd, selectors.EVENT_READ, (pid, pidfd, status))


def receive(connection: socket.socket) -> Request | None:
    data, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
    if not data:
        return None
    return Request(**json.loads(data), descriptors=descriptors)


def report_end(pid: int, pidfd: int, status: int) -> None:
    _, wait_status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # the test does not want to know
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(wait_status))
    os.close(pidfd)
    os.close(status)


def become(request: Request) -> None:
    """Run the requested program in a child, as ``subprocess`` would start it."""
    os.setpgid(0, 0)
    stdout, stderr, _ = request.descriptors
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.closerange(3, max(descriptors_of_this_process()) + 1)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    random.seed()
    sys.argv = ["aegis-actors", *request.words]
    signal.signal(STACKS_SIGNAL, write_stacks)


def write_stacks(_: int, frame: FrameType | None) -> None:
    """Write the stacks of all threads and Trio tasks to standard error: a signal handler."""
    faulthandler.dump_traceback(all_threads=True)
    with contextlib.suppress(RuntimeError):  # not inside Trio
        task = trio.lowlevel.current_root_task()
        if task is not None:
            write_tasks(task)


def write_tasks(task: trio.lowlevel.Task, depth: int = 0) -> None:
    """Write the stacks of a task and of all tasks below it, indented by depth."""
    lines = [f"task {task.name}"]
    for frame, line in task.iter_await_frames():
        lines.append(f"  {frame.f_code.co_name} at {frame.f_code.co_filename}:{line}")
    os.write(2, "".join(f"{'  ' * depth}{line}\n" for line in lines).encode())
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            write_tasks(child, depth + 1)


def descriptors_of_this_process() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc/self/fd"))


def import_the_daemon() -> None:
    """Import what a daemon has imported once it has served each of its interfaces."""
    import aegis.app
    import aegis.cli.grammar.click_program
    import aegis.servers.mcp.tools  # noqa: F401


def main() -> None:
    import_the_daemon()
    gc.collect()
    gc.freeze()  # the pages of these objects stay shared
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        request = serve(connection)
        if request is None:
            return
        connection.detach()
    become(request)
    from aegis.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
