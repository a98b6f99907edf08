"""A terminal of a real daemon whose ledger is split: kills, pages, a search, and the check."""

from __future__ import annotations

import pytest

from tests.e2e.harness import DaemonProcess, LiveTerminal

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


def segments(terminal: LiveTerminal) -> list[str]:
    return sorted(each.name for each in terminal.directory.glob("ledger.2*"))


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_while_a_ledger_is_split_or_compressed_loses_no_record(
    own_daemon: DaemonProcess, point: str
) -> None:
    terminal = opened(own_daemon, f"{point}[ledger.jsonl]@1=kill")
    sent = 0
    while True:
        assert sent <= TWO_SPLITS, "the ledger was not split"
        sent += 1
        if terminal.start(CMD).outcome()[0] == "lost":
            break
    own_daemon.wait_stopped()

    own_daemon.start()
    expected = [(number, CMD) for number in range(sent)]
    assert pages(terminal) == expected
    last = terminal.records()[-1]
    assert not last["killed_by_restart"]
    for _ in range(ONE_SPLIT):
        terminal.run(CMD)
    expected = [(number, CMD) for number in range(sent + ONE_SPLIT)]
    assert pages(terminal) == expected
    backward, before = list[int](), None
    while before != 0:
        page = own_daemon.call("term_read", name="build", last_n=7, before_seq=before)
        backward = [each["seq"] for each in page["result"]] + backward
        before = backward[0]
    assert backward == [number for number, _ in expected]
    packed = [each for each in segments(terminal) if each.endswith(".gz")]
    assert packed
    assert len(packed) == len(segments(terminal)) - 1
    found = own_daemon.cli("history", "--json", "--kind", "command", CMD).stdout.splitlines()
    assert len(found) == sent + ONE_SPLIT
    checked = own_daemon.cli("doctor")
    assert "terminal build" not in checked.stdout
