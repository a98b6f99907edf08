"""The other end of ``faulty_mount``: a test mounts it, and says which calls fail."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs

from tests.chaos.real.scratch import wait_readable
from tests.e2e.harness import GUARD_S

CHECKOUT = Path(__file__).resolve().parents[2]

ALWAYS = 1_000_000


def why_not() -> str:
    """Why no file system can be mounted by FUSE here; empty if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be used"
    tried = subprocess.run(
        [sys.executable, "-c", "import mfusepy"], capture_output=True, check=False
    )
    return "libfuse3 is not installed" if tried.returncode else ""


@attrs.frozen(eq=False)
class Armed:
    """A fault of the mounted disk."""

    disk: FuseDisk
    number: int

    def wait_hit(self, times: int = 1) -> None:
        """Wait until so many calls were struck."""
        assert self.disk.ask(do="wait", number=self.number, hits=times) >= times

    def disarm(self) -> int:
        """It strikes no more, and what it holds goes on; gives how many calls it struck."""
        return int(self.disk.ask(do="disarm", number=self.number))


class FuseDisk:
    """A file system at ``mount`` whose files are in ``directory``."""

    def __init__(self, directory: Path, mount: Path) -> None:
        self._mount = mount
        self._control = directory / "control"
        backing = directory / "backing"
        backing.mkdir()
        words = [sys.executable, "-m", "tests.resources.faulty_mount"]
        with (directory / "mount.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*words, str(backing), str(mount), str(self._control)],
                cwd=CHECKOUT,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        wait_readable(self._process.stdout.fileno())
        assert self._process.stdout.readline() == b"ready\n", "the file system was not mounted"

    def close(self) -> None:
        """Unmount it."""
        self._process.terminate()
        self._process.wait(GUARD_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        assert not os.path.ismount(self._mount)

    def ask(self, **request: object) -> Any:
        """One request to the file system."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(GUARD_S)
            connection.connect(str(self._control))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as lines:
                return json.loads(lines.readline())

    def arm(
        self,
        call: str,
        path: str,
        how: str = "error",
        *,
        code: int = errno.EIO,
        seconds: float = 0.0,
        times: int = ALWAYS,
    ) -> Armed:
        """Let the next ``times`` calls whose path ends like this go wrong, as ``Fault`` says."""
        return self._arm(call, f"{re.escape(path)}$", how, code, seconds, times)

    def arm_name(self, call: str, name: str) -> Armed:
        """Likewise, of the file of this name and of those that are written to take its place."""
        directory, _, name = name.rpartition("/")
        path = f"{re.escape(directory)}/[.]?{re.escape(name)}([.][a-z0-9]+)?$"
        return self._arm(call, path, "error", errno.EIO, 0.0, ALWAYS)

    def _arm(self, call: str, path: str, how: str, code: int, seconds: float, times: int) -> Armed:
        number = self.ask(
            do="arm",
            call=call,
            path=path,
            how=how,
            code=code,
            seconds=seconds,
            times=times,
        )
        return Armed(self, number)

    def calls(self, path: str) -> list[tuple[str, int, str]]:
        """The calls on paths that end like this: what, on which open file, what went wrong."""
        return [
            (call, handle, how)
            for call, _, handle, how in self.ask(do="log", path=f"{re.escape(path)}$")
        ]

    def heal(self) -> None:
        """Nothing goes wrong any more, and nothing waits."""
        self.ask(do="disarm_all")

    def lose_power(self, path: str = ".jsonl") -> list[str]:
        """Cut off what no sync covered, of all files that end like this; gives their names."""
        return list(self.ask(do="lose_power", path=f"{re.escape(path)}$"))
