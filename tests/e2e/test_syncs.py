"""Rule 10: no sync ever runs on the loop, whatever a whole daemon is asked to do."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

PROGRAM = '''\
"""``aegis-actors``, telling where each sync runs."""
import os
import sys
import traceback

import trio


def telling(name):
    sync = getattr(os, name)

    def tell(descriptor):
        on_loop = trio.lowlevel.in_trio_run()
        with open({syncs!r}, "a") as syncs:
            print(name, "on the loop" if on_loop else "elsewhere", file=syncs)
        if on_loop:
            traceback.print_stack()
        sync(descriptor)

    return tell


os.fsync, os.fdatasync = telling("fsync"), telling("fdatasync")

from aegis.cli.main import main

sys.exit(main())
'''


class TellingDaemon(DaemonProcess):
    """Writes into ``syncs`` where each of its syncs ran."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.syncs = directory / "syncs"
        self._script = directory / "telling.py"
        self._script.write_text(PROGRAM.format(syncs=str(self.syncs)))

    @property
    def program(self) -> list[str]:
        return [sys.executable, str(self._script)]

    def places(self) -> Counter[str]:
        return Counter(self.syncs.read_text().splitlines())


def use(daemon: DaemonProcess, who: str) -> None:
    """All that is kept on disk is written: ledgers, notes, inboxes, keys, descriptions."""
    build = daemon.terminal("build")
    woken = build.subscribe(who)
    assert build.run("echo one")["stdout"] == "one\n"
    build.wait_prompt()  # so it is typed at once
    late = build.run("read -r x; echo got $x", timeout=0.2)
    assert late["end"] is None
    build.keys("y\r")
    assert [woken.next()["body"].splitlines()[-1] for _ in range(2)] == ["one", "got y"]
    daemon.call("session_new", handle="bob")
    daemon.call("handoff", target_handle="bob", context="yours", from_handle=who)
    bob = daemon.call("inbox_read", from_handle="bob")
    daemon.call("inbox_read", from_handle="bob", after=bob["next"])
    build.run("exit 3")
    build.run("echo again")


@pytest.mark.long
def test_no_sync_ever_runs_on_the_loop(tmp_path: Path) -> None:
    telling = TellingDaemon(tmp_path)
    telling.start()
    try:
        use(telling, "ann")
        telling.kill()
        telling.start()
        use(telling, "eve")
        telling.call("term_close", name="build", purge=True)
    finally:
        code = telling.stop()
    assert code == 0
    places = telling.places()
    assert set(places) == {"fdatasync elsewhere", "fsync elsewhere"}, telling.failures()
    assert places["fdatasync elsewhere"] > 10
    assert places["fsync elsewhere"] > 5
    telling.check_left_nothing()
