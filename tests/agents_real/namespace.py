"""A network namespace with nothing but loopback, for a daemon, a CLI and the scripted model."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import pytest

READY = b"ready\n"


@attrs.frozen
class Namespace:
    """A namespace that exists as long as ``process``."""

    process: int

    def command(self, *words: str) -> list[str]:
        """Return the command line that runs ``words`` inside."""
        spaces = [f"--net=/proc/{self.process}/ns/net"]
        if os.geteuid() != 0:
            spaces += [f"--user=/proc/{self.process}/ns/user", "--preserve-credentials"]
        return ["nsenter", *spaces, *words]


@contextmanager
def loopback_only() -> Iterator[Namespace]:
    """Make a namespace; it ends when its holder's standard input ends, even after a kill -9."""
    with _start() as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == READY
        yield Namespace(holder.pid)


def _start() -> subprocess.Popen[bytes]:
    # Without root, only the root of a user namespace may bring the loopback device up.
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    script = "ip link set lo up && echo ready && exec cat"
    pipe = subprocess.PIPE
    words = ["unshare", *user, "--net", "sh", "-c", script]
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe)


def why_not() -> str | None:
    """Return why there can be no namespace here; ``None`` where there can."""
    missing = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    with _start() as holder:
        out, err = holder.communicate()
    return None if out == READY else err.decode().strip()


def namespace_or_skip() -> None:
    """Skip the test, with the reason, where there can be no namespace."""
    reason = why_not()
    if reason is not None:
        pytest.skip(f"no network namespace: {reason}")
