"""Inboxes of a real daemon: wakes that nobody reads, and an inbox that crashes again and again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aegis.faults import VARIABLE
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

KEPT = 1_000
"""Wakes that an inbox keeps one by one."""

FOLDED = 5

CRASHES = 12


def read(daemon: DaemonProcess, **arguments: object) -> list[dict[str, Any]]:
    reply = daemon.call("inbox_read", from_handle="pm", limit=KEPT, **arguments)
    messages: list[dict[str, Any]] = reply["messages"]
    return messages


@pytest.mark.long
def test_wakes_that_nobody_reads_fold_and_say_how_to_catch_up(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    own_daemon.call("term_spawn", name="build")
    own_daemon.call("term_subscribe", name="build", from_handle="pm")
    with own_daemon.connect() as client:
        for number in range(KEPT + FOLDED - 1):
            client.call("term_run", {"name": "build", "cmd": f": {number}"})
        client.call("term_subscribe", {"name": "build", "from_handle": "eve"})
        client.call("term_run", {"name": "build", "cmd": f": {KEPT + FOLDED - 1}"})
        assert client.call("inbox_wait", {"from_handle": "eve"})["messages"]
        # What comes to pm from here on comes after the last wake, which was sent with eve's.
        client.call("handoff", {"target_handle": "pm", "context": "after all of them"})
    before = read(own_daemon)

    own_daemon.kill()
    own_daemon.start()
    after = read(own_daemon)
    assert after == before, "a restart shows the same"
    told = re.search(r"up to seq (\d+)\n.*since_seq=(-?\d+)\)$", after[0]["text"])
    assert told is not None, after[0]["text"]
    last, since = int(told[1]), int(told[2])
    assert (since, last) == (-1, FOLDED - 1)
    assert [message["text"].splitlines()[1] for message in after[1:]] == [
        f"$ : {number} · run by human" for number in range(last + 1, last + KEPT)
    ]

    missed = own_daemon.call("term_read", name="build", since_seq=since)["result"]
    commands = [record["cmd"] for record in missed if record["seq"] <= last]
    assert commands == [f": {number}" for number in range(FOLDED)]

    rest = read(own_daemon, after=after[-1]["id"])
    assert [message["text"].splitlines()[1] for message in rest] == [
        f"$ : {KEPT + FOLDED - 1} · run by human",
        "after all of them",
    ]
    assert read(own_daemon, after=rest[-1]["id"]) == []


class FaultyDaemon(DaemonProcess):
    """A daemon whose inbox of pm crashes at its first messages."""

    @property
    def environment(self) -> dict[str, str]:
        crashes = [f"inbox.append.before[pm]@{number}=crash" for number in range(1, CRASHES + 1)]
        return {**super().environment, VARIABLE: ",".join(crashes)}


def test_an_inbox_that_crashes_again_and_again_costs_nobody_else_anything(tmp_path: Path) -> None:
    daemon = FaultyDaemon(tmp_path)
    daemon.start()
    try:
        for handle in ("pm", "bob"):
            daemon.call("session_new", handle=handle)
        for number in range(CRASHES):
            error = daemon.refusal("handoff", target_handle="pm", context=f"pm {number}")
            assert error.code == "unavailable"
            daemon.call("handoff", target_handle="bob", context=f"bob {number}")
        daemon.call("handoff", target_handle="pm", context="at last")
        reply = daemon.call("inbox_wait", from_handle="pm", timeout=30)
        assert [message["body"] for message in reply["messages"]] == ["at last"]
        reply = daemon.call("inbox_read", from_handle="bob")
        assert [message["body"] for message in reply["messages"]] == [
            f"bob {number}" for number in range(CRASHES)
        ]
        assert sum('"crashed"' in line for line in daemon.failures()) >= CRASHES
    finally:
        code = daemon.stop()
    assert code == 0
