"""Groups under ``kill -9``: of agents and of the daemon, at any moment and at the fault points."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import pytest

from aegis.client.line import ClientError, CommandFailed
from aegis.groups import faults
from tests.e2e.harness import KILL_SEEDS, DaemonProcess
from tests.e2e.test_agents import agents_of
from tests.e2e.test_groups import Grouped
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

KILLS = 25
"""Of each seed."""

POINTS = (
    *sorted(point.name for point in faults.GROUPS),
    *("turn.send.before", "turn.send.after", "inbox.append.after", "ledger.sync.before"),
    *("ledger.append.before", "ledger.append.after"),
)
SENDERS = ("pm", "dev")
PROFILES = ("ann", "bob", "cid")
SETTLE_S = 1.0
WAIT_S = 20.0


@attrs.define
class Sent:
    """A broadcast that was acknowledged: each reply to it is ``key``."""

    id: str
    key: str
    group: str
    sender: str
    replies: dict[str, str] = attrs.field(factory=dict)


class Ordeal:
    """A daemon with groups, owners that broadcast and wait, and kills at the same time."""

    def __init__(self, daemon: DaemonProcess, seed: int) -> None:
        self.daemon = daemon
        self.grouped = Grouped(daemon)
        self.evidence = daemon.root / "evidence"
        self.evidence.touch()
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.names = {sender: f"of-{sender}" for sender in SENDERS}
        self.is_over = False

    # The load: what is not acknowledged is sent again with the same key.

    def work(self, sender: str, seed: int) -> None:
        chance, number = random.Random(seed), 0
        self.ask("group_spawn_mixed", sender, group=self.names[sender], profiles=[*PROFILES])
        while not self.is_over:
            number += 1
            key = f"{sender}-{number}"
            more = chance.choice(["", "WAIT 0.1\n", "UNLESS bob WAIT 0.4\n"])
            objective = f"RUN echo {key}/$WHO >>{self.evidence}\n{more}SAY {key}"
            named = {"objective": objective, "key": key}
            reply = self.ask("group_broadcast", sender, group=self.names[sender], **named)
            if reply is not None:
                sent = Sent(reply["broadcast_id"], key, self.names[sender], sender)
                self.sent.append(sent)
                self.wait(sent, chance)
            if chance.random() < 0.1:
                self.rename(sender, number)

    def is_answered(self, number: int) -> bool:
        """Whether there were more orders than this, and more replies."""
        replies = sum(len(each.replies) for each in [*self.sent])
        return len(self.sent) > number and replies > number

    def rename(self, sender: str, number: int) -> None:
        new = f"of-{sender}-{number}"
        if self.ask("group_rename", sender, group=self.names[sender], new_name=new):
            self.names[sender] = new

    def wait(self, sent: Sent, chance: random.Random) -> None:
        named = {"broadcast_id": sent.id, "timeout": WAIT_S}
        command = chance.choice(["group_wait_all", "group_wait_any"])
        while (found := self.ask(command, sent.sender, group=sent.group, **named)) is not None:
            self.check_replies(sent, found)
            if found["metadata"]["is_over"]:
                return

    def check_replies(self, sent: Sent, found: dict[str, Any]) -> None:
        """Each reply is one to this broadcast, and what was returned once stays."""
        assert found["broadcast_id"] == sent.id
        assert {*found["by_member"].values()} <= {sent.key}, (sent, found)
        assert sent.replies.items() <= found["by_member"].items(), (sent, found)
        sent.replies = found["by_member"]

    def ask(self, command: str, sender: str, **given: object) -> dict[str, Any] | None:
        """Call until there is an answer; None if there is none at the end, or it is refused."""
        while True:
            try:
                return self.daemon.call(command, from_handle=sender, **given)
            except CommandFailed as error:
                if error.code in ("already_exists", "invalid_request"):
                    return None  # it was carried out, and the answer was lost
                if error.code not in ("busy", "unavailable", "storage", "not_found", "internal"):
                    raise
            except (ClientError, OSError, ValueError):
                pass
            if self.is_over:
                return None
            time.sleep(0.05)

    @contextmanager
    def load(self, seed: int) -> Iterator[None]:
        failures: list[BaseException] = []

        def run(sender: str, own_seed: int) -> None:
            try:
                self.work(sender, own_seed)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [
            threading.Thread(target=run, args=[sender, seed + number])
            for number, sender in enumerate(SENDERS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over = True
            for thread in threads:
                thread.join()
        assert failures == []

    # Kills.

    def kill_one(self) -> None:
        time.sleep(self.chance.uniform(0.02, 0.7))
        kind = self.chance.choice(["agent", "daemon", "point", "point"])
        if kind == "agent":
            pids = agents_of(self.daemon)
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(pids), signal.SIGKILL)
        else:
            self.daemon.kill()
            faults = f"{self.chance.choice(POINTS)}@{self.chance.randint(1, 4)}=kill"
            self.restart(faults if kind == "point" else "")
        self.kills[kind] += 1

    def restart(self, faults: str) -> None:
        """Start the daemon; once more without faults if it dies of them."""
        if faults:
            self.daemon.launch("--port", "0", "--trust", faults=faults)
            if self.daemon.wait_ready() and not self.daemon.wait_dead(SETTLE_S):
                self.daemon.kill()
            self.daemon.kill()
        self.grouped.start()

    # What must hold afterwards.

    def check(self) -> None:
        until(lambda: self.unsettled() == [], "no reply is awaited any more")
        for sent in self.sent:
            found = self.grouped.wait(sent.group, broadcast_id=sent.id, timeout=0)
            self.check_replies(sent, found)
        self.check_groups()
        self.check_evidence()
        self.check_ledgers()
        self.check_messages()
        self.check_transcripts()

    def groups(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.daemon.call("group_list")["result"]
        return found

    def unsettled(self) -> list[str]:
        newest = [each["broadcast"] for each in self.groups() if each["broadcast"]]
        return [each["broadcast_id"] for each in newest if not each["is_over"]]

    def check_groups(self) -> None:
        """Each group is whole, and no session is left that belongs to none."""
        groups = self.groups()
        assert len(groups) == len(SENDERS)
        members = [member["handle"] for each in groups for member in each["members"]]
        assert len(members) == len(SENDERS) * len(PROFILES)
        assert sorted(self.grouped.open_sessions()) == sorted(members)

    def check_evidence(self) -> None:
        """No member began an order twice, and each that replied did begin it."""
        begun = Counter(self.evidence.read_text().split())
        assert {*begun.values()} <= {1}
        keys = Counter(each.partition("/")[0] for each in begun)
        for sent in self.sent:
            assert keys[sent.key] >= len(sent.replies), sent

    def check_ledgers(self) -> None:
        for path in (self.daemon.state.directory / "groups").iterdir():
            lines = [json.loads(line) for line in path.read_bytes().splitlines()]
            changes = [(each["id"], each["set"]) for each in lines]
            for field, value in (("type", "end"), ("is_notified", True), ("is_withdrawn", True)):
                named = [
                    id_
                    for id_, each in changes
                    if (field, value) in each.items() and ("type" in each) == (field == "type")
                ]
                assert len(named) == len({*named}), f"{field} once"
            keys = [each["key"] for _, each in changes if each.get("type") == "broadcast"]
            assert len(keys) == len({*keys})

    def check_messages(self) -> None:
        """Each sender gets one message for each of its broadcasts."""

        def ids(sender: str) -> list[str]:
            reply = self.daemon.call("inbox_read", from_handle=sender, limit=1000)
            return [each["id"] for each in reply["messages"]]

        def are_notified() -> bool:
            found = {each for sender in SENDERS for each in ids(sender)}
            return {f"broadcast:{each.id}/end" for each in self.sent} <= found

        until(are_notified, "all are notified")
        for sender in SENDERS:
            found = [each for each in ids(sender) if each.startswith("broadcast:")]
            assert len(found) == len({*found})

    def check_transcripts(self) -> None:
        """Each order and each cancellation became a turn of its own, once."""
        for handle in self.grouped.open_sessions():
            turns = self.grouped.entries(handle, "turn_opened")
            messages = [[each["id"] for each in turn["messages"]] for turn in turns]
            assert all(len(each) == 1 for each in messages)
            assert len(messages) == len({each for [each] in messages})


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_kills_credit_no_reply_to_another_broadcast_and_lose_none(
    own_daemon: DaemonProcess, seed: int
) -> None:
    ordeal = Ordeal(own_daemon, seed)
    with ordeal.load(seed):
        for _ in range(KILLS - 1):
            ordeal.kill_one()
        # Between kills a busy machine may not even start the agents.
        until(lambda: ordeal.is_answered(KILLS // 2), "orders are given and answered")
        ordeal.kill_one()
    ordeal.check()
    assert sum(ordeal.kills.values()) == KILLS
