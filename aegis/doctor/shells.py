"""The check of the shells: a temporary daemon runs a command on each."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aegis.client.line import ClientError, LineClient, connect
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.processes.environment import OUR_PYTHON

SHELLS = ("bash", "zsh", "fish")
START_LIMIT_S = 30.0
COMMAND_LIMIT_S = 30.0
STOP_LIMIT_S = 15.0
VERSION_LIMIT_S = 10.0

PROGRAM = (*OUR_PYTHON, "-c", "from aegis.cli.main import main; main()")
READY = b"aegis-actors down"


def examine_shells() -> Iterator[Finding]:
    """Yield a finding for each supported shell, run with the user's start-up files."""
    found = {name: path for name in SHELLS if (path := shutil.which(name)) is not None}
    if "bash" not in found:
        yield problem("shell bash", "it is not installed", "install bash 4.4 or newer")
    try:
        with _daemon() as client:
            for name, path in found.items():
                yield _examine(client, name, path)
    except (ClientError, OSError, subprocess.SubprocessError) as error:
        yield problem("shells", f"the daemon that tests them cannot start: {error}", "see above")


def _examine(client: LineClient, name: str, path: str) -> Finding:
    subject, sentence = f"shell {name}", _version(path)
    try:
        info = client.call("term_spawn", {"name": name, "shell": path})
        arguments = {"name": name, "cmd": "true", "timeout": COMMAND_LIMIT_S}
        record = client.call("term_run", arguments)
    except ClientError as error:
        return problem(subject, f"{sentence}: {error}", "check its start-up files")
    if record["exit"] != 0:
        remedy = "check its start-up files"
        return problem(subject, f"{sentence}: 'true' ended with {record['exit']}", remedy)
    if info["integration"] != "osc133":
        remedy = "upgrade it, or check whether its start-up files start another shell"
        return warning(subject, f"{sentence}: the boundaries of commands are best effort", remedy)
    return ok(subject, f"{sentence}: runs commands with exact boundaries")


def _version(path: str) -> str:
    done = subprocess.run(
        [path, "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=VERSION_LIMIT_S,
        check=False,
    )
    lines = done.stdout.decode(errors="replace").splitlines()
    return f"{lines[0] if lines else 'of unknown version'} ({path})"


@contextmanager
def _daemon() -> Iterator[LineClient]:
    """Run a daemon with a temporary root, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="aegis-doctor-") as directory:
        root = Path(directory).resolve()
        words = [*PROGRAM, "up", "--root", str(root), "--port", "0", "--log-level", "error"]
        log = Path(directory, "log")
        with log.open("wb") as errors:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        try:
            _wait_ready(process, log)
            with connect(root) as client:
                yield client
        finally:
            _end(process)


def _wait_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the daemon is ready. Raises ``OSError`` if it ends or takes too long."""
    assert process.stdout is not None
    output = b""
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    while READY not in output:
        if not poll.poll(START_LIMIT_S * 1000):
            raise TimeoutError(f"it is not ready after {START_LIMIT_S:g} s")
        more = os.read(process.stdout.fileno(), 65_536)
        if not more:
            lines = log.read_text(errors="replace").strip().splitlines()
            raise OSError(lines[-1] if lines else "it ended while it was starting")
        output += more


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()
