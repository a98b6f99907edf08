"""What an attack costs the others: how long their calls take, and how much the daemon grows."""

from __future__ import annotations

import sys
import threading
import time

from tests.e2e.harness import DaemonProcess

MIB = 1024 * 1024
PAUSE_S = 0.01


class Bystander:
    """A client that asks for the status, one call after the other, and is not the attacker."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._daemon = daemon
        self.waits: list[float] = []
        self.before = int(daemon.call("status")["rss_bytes"])
        self.most = self.before
        self.failure: Exception | None = None

    @property
    def grown(self) -> float:
        """How much the daemon's resident memory had grown at its largest, in MiB."""
        return (self.most - self.before) / MIB

    def work(self, over: threading.Event) -> None:
        """Ask until ``over``, over a connection of its own each time."""
        try:
            while True:
                began = time.monotonic()
                status = self._daemon.call("status")
                self.waits.append(time.monotonic() - began)
                self.most = max(self.most, status["rss_bytes"])
                if over.wait(PAUSE_S):
                    return
        except Exception as error:
            self.failure = error


def tell(attack: str, bystander: Bystander, took_s: float) -> None:
    """Print the figures of an attack; pytest shows them with ``-s``."""
    waits = sorted(bystander.waits)
    median, worst = waits[len(waits) // 2] * 1000, waits[-1] * 1000
    sys.stdout.write(
        f"\nattack: {attack}: {took_s:.1f} s; others answered in {median:.1f} ms, at worst "
        f"{worst:.0f} ms, {len(waits)} calls; memory +{bystander.grown:.1f} MiB\n"
    )
