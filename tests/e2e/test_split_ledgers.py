"""A terminal of a real daemon whose ledger is split: kills, pages, a search, and the check."""

from __future__ import annotations

import pytest

from aegis.client.errors import ClientError
from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess, LiveTerminal
from tests.e2e.hosts import until

pytestmark = pytest.mark.real

POINTS = ("ledger.split.before", "ledger.split.after", "ledger.pack.before", "ledger.pack.after")

CMD = "seq 1 20000"
"""A command whose record has more than 64 KiB."""

ONE_SPLIT, TWO_SPLITS = 40, 80
"""Commands after which the ledger was split so often, at least."""


def opened(daemon: DaemonProcess, faults: str) -> LiveTerminal:
    daemon.start(faults=faults)
    return LiveTerminal(daemon, "build", daemon.call("term_spawn", name="build"))


def pages(terminal: LiveTerminal) -> list[tuple[int, str]]:
    """Return the number and the text of each record, read forward in pages."""
    found: list[tuple[int, str]] = []
    more = True
    while more:
        since = found[-1][0] if found else -1
        page = terminal.daemon.call("term_read", name=terminal.name, since_seq=since)
        found += [(each["seq"], each["cmd"]) for each in page["result"]]
        more = page.get("more", False)
        assert "damaged" not in page
        assert "oldest_kept" not in page
    return found


def is_packed(terminal: LiveTerminal) -> bool:
    """Return whether all segments but the newest are compressed, and there are some."""
    names = [each.name for each in terminal.directory.glob("ledger.2*")]
    packed = [each for each in names if each.endswith(".gz")]
    return len(packed) == len(names) - 1 > 0


def run_until_killed(terminal: LiveTerminal) -> int:
    """Run commands until the daemon is killed; return how many of them were answered."""
    for number in range(TWO_SPLITS):
        try:
            terminal.run(CMD)
        except CommandFailed:
            raise
        except ClientError:
            return number
    pytest.fail("the ledger was not split")


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_while_a_ledger_is_split_or_compressed_loses_no_record(
    own_daemon: DaemonProcess, point: str
) -> None:
    terminal = opened(own_daemon, f"{point}[ledger.jsonl]@1=kill")
    answered = run_until_killed(terminal)
    own_daemon.wait_stopped()

    own_daemon.start()
    found = pages(terminal)
    # Segments are compressed beside the next command, which the kill may end.
    assert len(found) - answered in (0, 1)
    assert found == [(number, CMD) for number in range(len(found))]
    killed = [each["seq"] for each in terminal.read(last_n=5) if each["killed_by_restart"]]
    assert all(each >= answered for each in killed)

    for _ in range(ONE_SPLIT):
        terminal.run(CMD)
    expected = [(number, CMD) for number in range(len(found) + ONE_SPLIT)]
    assert pages(terminal) == expected
    until(lambda: is_packed(terminal))
    assert pages(terminal) == expected
    backward, before = list[int](), None
    while before != 0:
        page = own_daemon.call("term_read", name="build", last_n=7, before_seq=before)
        backward = [each["seq"] for each in page["result"]] + backward
        before = backward[0]
    assert backward == [number for number, _ in expected]
    lines = own_daemon.cli("history", "--json", "--kind", "command", CMD).stdout.splitlines()
    assert len(lines) == len(expected)
    own_daemon.stop()  # and the doctor has nothing to say about its ledger
