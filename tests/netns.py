"""Two hosts on one machine: network namespaces, a wire between them that can be cut.

The namespaces have no names. Each lives as long as a process that waits for the end of its input,
so nothing stays, whatever becomes of the tests, and tests that run side by side share nothing.
Between the hosts is a bridge in a third namespace: a cut takes one host off it, so that neither
sees its own link go down, and what is sent is lost without a word.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import attrs
import pytest


def why_not() -> str | None:
    """Why there can be no hosts here; ``None`` where there can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    missing = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    words = ["unshare", "--net", "ip", "link", "add", "name", "probe", "type", "bridge"]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    return tried.stderr.strip() or None


needs_hosts = pytest.mark.skipif(why_not() is not None, reason=f"no hosts: {why_not()}")
"""Marks tests that need them, which are skipped where there can be none."""


@attrs.frozen
class Host:
    """One of the hosts, at ``address``."""

    address: str
    process: int

    def command(self, *words: str) -> list[str]:
        """What runs ``words`` there."""
        return ["nsenter", f"--net=/proc/{self.process}/ns/net", *words]

    def run(self, *words: str) -> None:
        """Run ``words`` there to their end; ``CalledProcessError`` if they fail."""
        subprocess.run(self.command(*words), check=True)


@attrs.frozen
class Hosts:
    """Two hosts, and what connects them."""

    a: Host
    b: Host
    _between: Host
    _silent: list[tuple[Host, str]] = attrs.field(factory=list)

    def cut(self) -> None:
        """Lose all that either sends from now on."""
        self._between.run("ip", "link", "set", "to-b", "nomaster")

    def silence(self, host: Host) -> None:
        """Lose all that this one sends from now on; it still hears the other."""
        other = self.b if host is self.a else self.a
        host.run("ip", "route", "add", "blackhole", other.address)
        self._silent.append((host, other.address))

    def heal(self) -> None:
        """Connect them again."""
        self._between.run("ip", "link", "set", "to-b", "master", "bridge")
        while self._silent:
            host, address = self._silent.pop()
            host.run("ip", "route", "del", "blackhole", address)


@contextmanager
def two_hosts() -> Iterator[Hosts]:
    """Two hosts that reach each other, and nothing else."""
    with ExitStack() as stack:
        a, b, between = (
            Host(address, stack.enter_context(_namespace()))
            for address in ("10.77.0.1", "10.77.0.2", "")
        )
        between.run("ip", "link", "add", "name", "bridge", "type", "bridge")
        between.run("ip", "link", "set", "bridge", "up")
        for name, host in (("to-a", a), ("to-b", b)):
            ends = ["type", "veth", "peer", "name", "eth0", "netns", str(host.process)]
            between.run("ip", "link", "add", "name", name, *ends)
            between.run("ip", "link", "set", name, "master", "bridge", "up")
            host.run("ip", "link", "set", "lo", "up")
            host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")
        yield Hosts(a, b, between)


@contextmanager
def _namespace() -> Iterator[int]:
    """The number of a process that holds a namespace of its own."""
    words = ["unshare", "--net", "sh", "-c", "echo there; exec cat"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"there\n"
        yield holder.pid
