"""Groups of a real daemon, whose members are stand-ins."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

import aegis
from aegis.client.line import CommandFailed
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real

Json = dict[str, Any]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ask-a-group.md"

WHO = "RUN echo $WHO"
"""The reply is the name of the member's profile."""


class Grouped(Team):
    """A daemon whose profiles are told apart by the variable ``WHO``."""

    def __init__(self, daemon: DaemonProcess, limits: dict[str, int] | None = None) -> None:
        self.daemon = daemon
        command = [sys.executable, str(STAND_IN), "claude"]
        agents: dict[str, Json] = {
            name: {
                "provider": "claude",
                "permission": permission,
                "command": [*command],
                "env": {"WHO": name},
            }
            for name, permission in (
                *(("ann", "ask"), ("bob", "ask"), ("cid", "ask"), ("all", "full")),
                *(("reviewer", "read"), ("builder", "write")),
            )
        }
        agents["broken"] = {"provider": "claude", "command": ["/bin/false"]}
        presets = {"three": ["ann", "bob", "cid"], "review": ["reviewer", "reviewer", "builder"]}
        configuration = {
            "agents": agents,
            "groups": {"presets": presets},
            "limits": limits or {"sessions": 24},
        }
        (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
        self.start()

    def start(self, faults: str = "") -> None:
        self.daemon.start("--port", "0", "--trust", faults=faults)

    def group(self, name: str = "g", **arguments: object) -> Json:
        given = arguments or {"preset": "three"}
        return self.call("group_spawn_mixed", group=name, **given)

    def handles(self, name: str = "g") -> dict[str, str]:
        """The handles of the members by their profiles."""
        members = self.call("group_status", group=name)["members"]
        return {each["profile"]: each["handle"] for each in members}

    def broadcast(self, objective: str = WHO, group: str = "g", **arguments: object) -> str:
        reply = self.call("group_broadcast", group=group, objective=objective, **arguments)
        id_: str = reply["broadcast_id"]
        return id_

    def wait(self, group: str = "g", **arguments: object) -> Json:
        return self.call("group_wait_all", **({"timeout": GUARD_S} | arguments), group=group)

    def first(self, group: str = "g", **arguments: object) -> Json:
        return self.call("group_wait_any", **({"timeout": GUARD_S} | arguments), group=group)

    def gets(self, handle: str, number: int) -> list[Json]:
        until(lambda: len(self.inbox(handle)) >= number, f"{handle} gets {number} messages")
        return self.inbox(handle)

    def works(self, handle: str) -> None:
        self.is_in(handle, "working")

    def open_sessions(self) -> list[str]:
        return [each["handle"] for each in self.call("list_sessions")["result"]]


def only(*who: str) -> str:
    """An order that these profiles carry out at once, and at which the others hang."""
    return f"UNLESS {','.join(who)} HANG\n{WHO}"


def said(text: str) -> str:
    """The output in the reply of a stand-in that ran a command."""
    return text.removeprefix("ran 0: ").strip()


@pytest.fixture
def grouped(own_daemon: DaemonProcess) -> Iterator[Grouped]:
    yield Grouped(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_all_members_reply_and_the_sender_is_notified(grouped: Grouped) -> None:
    group = grouped.group(from_handle="pm", preset="three")
    assert [each["profile"] for each in group["members"]] == ["ann", "bob", "cid"]
    id_ = grouped.broadcast(from_handle="pm", output_format="one word")
    found = grouped.wait(reducer="join_by_handle")
    handles = grouped.handles()
    # The stand-in says the lines that are no orders too: its last message is the last of them.
    assert {*found["by_member"].values()} == {"one word"}
    assert sorted(found["order"]) == sorted(handles.values())
    assert (found["metadata"]["is_over"], found["broadcast_id"]) == (True, id_)
    [message] = grouped.gets("pm", 1)
    assert message["text"].startswith("> from group:g · ok · ")
    assert "3 of 3 members have replied" in message["body"]
    [opened] = grouped.entries(handles["bob"], "turn_opened")
    assert opened["text"].startswith(f"> from group:g/broadcast:{id_} · ")
    assert "\nObjective:\n" in opened["text"]
    assert grouped.info(handles["bob"])["spawned_by"] == "pm"


def test_a_reply_is_the_whole_last_message_of_the_turn(grouped: Grouped) -> None:
    grouped.group(profiles=["ann"])
    grouped.broadcast("SAY a chunk\nRUN true\nSAY first\nSAY the last\ntwo lines of it")
    [text] = grouped.wait()["by_member"].values()
    assert text == "two lines of it"
    grouped.broadcast("RUN for i in 1 2 3; do seq 1000 | tr '\\n' ' '; done")
    [text] = grouped.wait()["by_member"].values()
    assert said(text).split() == [str(each) for each in range(1, 1001)] * 3


def until_there(gate: Path) -> str:
    """The shell command that waits for a file."""
    return f"until [ -e {gate} ]; do sleep 0.05; done"


def test_votes_are_counted_and_the_first_finisher_wins_ties(
    grouped: Grouped, tmp_path: Path
) -> None:
    def have_replied(number: int) -> bool:
        return len(grouped.wait(timeout=0)["order"]) == number

    grouped.group()
    grouped.broadcast("RUN [ $WHO = bob ] && echo yes || { sleep 0.5; echo No; }")
    assert said(grouped.wait(reducer="majority_vote")["reduced"]) == "No"
    grouped.broadcast(f"RUN {until_there(tmp_path / '$WHO')}; echo $WHO")
    for number, who in enumerate(("bob", "cid", "ann"), 1):
        (tmp_path / who).touch()
        until(partial(have_replied, number), f"{who} replies")
    found = grouped.wait(reducer="majority_vote")
    assert said(found["reduced"]) == "bob"
    assert said(grouped.wait(reducer="last_wins")["reduced"]) == "ann"


def test_the_first_reply_is_taken_and_the_losers_are_interrupted(grouped: Grouped) -> None:
    grouped.group()
    handles = grouped.handles()
    id_ = grouped.broadcast(only("cid"))
    for who in ("ann", "bob"):
        grouped.works(handles[who])
    found = grouped.first()
    assert (said(found["reduced"]), found["order"]) == ("cid", [handles["cid"]])
    members = found["metadata"]["members"]
    assert members[handles["ann"]]["status"] == "cancelled"
    for who in ("ann", "bob"):
        grouped.has_outcomes(handles[who], "cancelled", "completed")
        _, told = grouped.entries(handles[who], "turn_opened")
        assert told["text"].startswith(f"> from group:g/cancel:{id_} · ")
    grouped.has_outcomes(handles["cid"], "completed")
    assert said(grouped.first()["reduced"]) == "cid"


def test_an_order_that_a_loser_has_not_begun_is_never_sent_to_its_agent(
    grouped: Grouped, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    grouped.group(profiles=["ann", "bob"])
    handles = grouped.handles()
    grouped.send(handles["ann"], f"RUN {until_there(gate)}\nSAY of another")
    grouped.works(handles["ann"])
    grouped.broadcast(WHO)
    assert grouped.first()["order"] == [handles["bob"]]
    gate.touch()
    grouped.has_outcomes(handles["ann"], "completed", "cancelled", "completed")
    assert "of another" in grouped.texts(handles["ann"]), "that turn was not interrupted"
    assert "ann" not in [said(each) for each in grouped.texts(handles["ann"])]


def test_a_late_reply_is_not_credited_to_the_next_broadcast(
    grouped: Grouped, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    grouped.group(profiles=["ann", "bob"])
    handles = grouped.handles()
    order = f"RUN [ $WHO = bob ] || {until_there(gate)}; echo first $WHO"
    first = grouped.broadcast(order)
    assert grouped.first()["order"] == [handles["bob"]]
    second = grouped.broadcast("RUN echo second $WHO")
    gate.touch()
    found = {handle: said(text) for handle, text in grouped.wait()["by_member"].items()}
    assert found == {handles["ann"]: "second ann", handles["bob"]: "second bob"}
    again = grouped.wait(broadcast_id=first)
    assert [said(text) for text in again["by_member"].values()] == ["first bob"]
    assert grouped.wait(broadcast_id=second)["order"] == grouped.wait()["order"]


def test_a_group_has_one_broadcast_at_a_time_and_a_key_sends_it_once(grouped: Grouped) -> None:
    grouped.group(profiles=["ann"])
    id_ = grouped.broadcast("HANG", key="k")
    assert grouped.broadcast("HANG", key="k") == id_
    refusal = grouped.daemon.refusal("group_broadcast", group="g", objective="SAY x")
    assert (refusal.code, "still waits for" in str(refusal)) == ("busy", True)


def test_members_without_a_reply_are_named_with_the_reason(grouped: Grouped) -> None:
    grouped.group(profiles=["ann", "bob", "cid", "broken"])
    handles = grouped.handles()
    grouped.broadcast("UNLESS bob,cid DIE -9\nUNLESS ann,cid HANG\nASK make")
    request = open_request(grouped)
    until(
        lambda: (
            grouped.wait(timeout=0)["metadata"]["members"][handles["broken"]]["status"] == "lost"
        ),
        "a session that cannot be started is lost",
    )
    until(
        lambda: (
            grouped.wait(timeout=0)["metadata"]["members"][handles["ann"]]["status"]
            == "interrupted"
        ),
        "a session whose agent is killed is interrupted",
    )

    def awaited(who: str) -> dict[str, str]:
        member: dict[str, str] = grouped.wait(timeout=0.2)["metadata"]["members"][handles[who]]
        assert member["status"] == "pending"
        return member

    until(lambda: awaited("bob")["state"] == "working", "one still works")
    until(lambda: awaited("cid")["state"] == "blocked", "another one waits for the answer")
    assert awaited("cid")["reason"].startswith("permission: ")
    grouped.call("interrupt", handle=handles["bob"])
    named = {"id": request["id"], "digest": request["digest"]}
    grouped.call("request_answer", **named, answer="allow")
    found = grouped.wait()
    assert found["metadata"]["members"][handles["bob"]]["status"] == "cancelled"
    assert found["order"] == [handles["cid"]]
    [message] = grouped.gets("human", 1)
    assert message["status"] == "error"


def test_a_closed_member_is_lost_and_the_others_are_waited_for(grouped: Grouped) -> None:
    grouped.group()
    handles = grouped.handles()
    grouped.call("close", handle=handles["ann"])
    grouped.broadcast(WHO)
    found = grouped.wait()
    assert found["metadata"]["members"][handles["ann"]]["status"] == "lost"
    assert len(found["order"]) == 2


def test_either_all_members_start_or_none(grouped: Grouped) -> None:
    for arguments, reason in (
        ({"profiles": ["ann", "nobody"]}, "no profile"),
        ({"profiles": ["ann"] * 23 + ["bob"] * 3}, "limit"),
        ({"profiles": ["ann"] * 33}, "at most 32 members"),
        ({"profiles": []}, "name either profiles"),
        ({"profiles": ["ann"], "preset": "three"}, "name either profiles"),
        ({"preset": "thre"}, "did you mean 'three'?"),
    ):
        refusal = grouped.daemon.refusal("group_spawn_mixed", group="g", **arguments)
        assert reason in str(refusal), refusal
        assert grouped.open_sessions() == []
        assert grouped.call("group_list")["result"] == []
    grouped.group()
    refusal = grouped.daemon.refusal("group_spawn_mixed", group="g", preset="three")
    assert "has 3 members already" in str(refusal)
    taken = grouped.handles()["ann"]
    refusal = grouped.daemon.refusal("group_spawn", group="g", profile="ann", handle=taken)
    assert refusal.code == "already_exists"
    grouped.call("group_spawn", group="g", profile="bob", handle="eve")
    assert len(grouped.call("group_status", group="g")["members"]) == 4


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("point", ["group.spawn.before", "group.spawn.after"])
def test_a_kill_while_members_start_leaves_a_whole_group(
    own_daemon: DaemonProcess, point: str, number: int
) -> None:
    grouped = Grouped(own_daemon)
    own_daemon.stop()
    own_daemon.launch("--port", "0", "--trust", faults=f"{point}[g]@{number}=kill")
    own_daemon.wait_ready()
    with suppress(Exception):
        grouped.group()
    own_daemon.wait_dead(GUARD_S)
    own_daemon.kill()
    grouped.start()
    until(lambda: len(grouped.call("group_status", group="g")["members"]) == 3, "it is whole")
    assert sorted(grouped.open_sessions()) == sorted(grouped.handles().values())
    grouped.broadcast(WHO)
    assert {said(each) for each in grouped.wait()["by_member"].values()} == {"ann", "bob", "cid"}


def test_a_kill_of_the_daemon_keeps_replies_and_repeats_no_turn(grouped: Grouped) -> None:
    grouped.group(from_handle="pm", preset="three")
    handles = grouped.handles()
    first = grouped.broadcast(WHO, from_handle="pm")
    before = grouped.wait()
    second = grouped.broadcast(only("bob"), from_handle="pm", key="k")
    until(lambda: grouped.wait(timeout=0)["order"] == [handles["bob"]], "bob replies")
    for who in ("ann", "cid"):
        grouped.works(handles[who])
    grouped.daemon.kill()
    grouped.start()
    assert grouped.broadcast(only("bob"), from_handle="pm", key="k") == second
    found = grouped.wait(broadcast_id=second)
    statuses = {who: found["metadata"]["members"][each]["status"] for who, each in handles.items()}
    assert statuses == {"ann": "interrupted", "bob": "replied", "cid": "interrupted"}
    again = grouped.wait(broadcast_id=first)
    assert (again["by_member"], again["order"]) == (before["by_member"], before["order"])
    for handle in handles.values():
        assert [each["turn"] for each in grouped.entries(handle, "turn_opened")] == [1, 2]
    bodies = [each["body"] for each in grouped.gets("pm", 2)]
    assert [first in bodies[0], second in bodies[1]] == [True, True]


def test_a_crash_of_the_desk_loses_no_reply(grouped: Grouped, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    grouped.daemon.stop()
    grouped.start(",".join(f"actor.receive.before[GroupDesk]@{each}=crash" for each in (4, 9)))
    grouped.group()
    id_ = grouped.broadcast(f"RUN {until_there(gate)}; echo $WHO")

    def have_replied() -> bool:
        with suppress(CommandFailed):  # the call that makes it crash is answered with that
            return bool(grouped.wait(timeout=0, broadcast_id=id_)["metadata"]["is_over"])
        return False

    def has_crashed_twice() -> bool:
        assert not have_replied()
        return sum('"crashed"' in line for line in grouped.daemon.failures()) == 2

    until(has_crashed_twice, "it crashes twice")
    gate.touch()
    until(have_replied, "all reply")
    replies = [said(each) for each in grouped.wait()["by_member"].values()]
    assert sorted(replies) == ["ann", "bob", "cid"]
    assert "GroupDesk" in grouped.daemon.log


def test_a_group_is_its_creators(grouped: Grouped) -> None:
    lead = grouped.spawn(profile="ann")
    other = grouped.spawn(profile="ann")
    refusal = grouped.daemon.refusal(
        "group_spawn_mixed", group="g", profiles=["bob", "all"], from_handle=lead
    )
    assert "which is higher than 'ask'" in str(refusal)
    grouped.group(profiles=["ann", "bob"], from_handle=lead)
    below = grouped.handles()["ann"]
    grouped.group("inner", profiles=["cid"], from_handle=below)
    for by in (other, "stranger", below):
        for command, arguments in (
            ("group_spawn", {"profile": "ann"}),
            ("group_broadcast", {"objective": "SAY x"}),
            ("group_wait_any", {}),
            ("group_rename", {"new_name": "mine"}),
            ("group_dissolve", {}),
        ):
            refusal = grouped.daemon.refusal(command, group="g", from_handle=by, **arguments)
            assert (refusal.code, "has created" in str(refusal)) == ("forbidden", True), command
    grouped.broadcast(WHO, group="inner", from_handle=lead)
    found = grouped.first("inner", cancel_losers=False, from_handle=other)
    assert said(found["reduced"]) == "cid"
    info = grouped.call("group_dissolve", group="inner", from_handle=lead)
    assert (info["state"], info["owner"]) == ("dissolved", f"agent:{below}")


def test_members_and_orders_count_to_the_limits(own_daemon: DaemonProcess) -> None:
    grouped = Grouped(own_daemon, {"sessions": 20, "spawns_per_hour": 4, "messages_per_hour": 4})
    lead = grouped.spawn(profile="ann")
    grouped.group(from_handle=lead, preset="three")
    refusal = grouped.daemon.refusal(
        "group_spawn_mixed", group="h", profiles=["bob", "bob"], from_handle=lead
    )
    assert "limits.spawns_per_hour" in str(refusal)
    assert len(grouped.open_sessions()) == 4
    for number in range(2):
        grouped.broadcast(f"SAY {number}", from_handle=lead)
        grouped.wait()
    refusal = grouped.daemon.refusal(
        "group_broadcast", group="g", objective="SAY x", from_handle=lead
    )
    assert "limits.messages_per_hour" in str(refusal)
    grouped.broadcast("SAY by a person")


def test_a_rename_keeps_everything_through_a_kill(grouped: Grouped) -> None:
    grouped.group(profiles=["ann"])
    first = grouped.broadcast(WHO)
    grouped.wait()
    info = grouped.call("group_rename", group="g", new_name="council")
    assert (info["group"], info["aliases"]) == ("council", ["g"])
    handle = grouped.handles("council")["ann"]
    grouped.call("rename", old_handle=handle, new_handle="ann-the-first")
    grouped.daemon.kill()
    grouped.start()
    found = grouped.wait("g", broadcast_id=first)
    assert found["order"] == ["ann-the-first"]
    grouped.broadcast(WHO, group="council")
    assert said(grouped.wait("council")["by_member"]["ann-the-first"]) == "ann"
    refusal = grouped.daemon.refusal("group_spawn_mixed", group="G", profiles=["bob"])
    assert "'council' has 1 members already" in str(refusal)


def test_dissolving_closes_the_members_and_frees_the_name(grouped: Grouped) -> None:
    grouped.group(from_handle="pm", preset="three")
    grouped.broadcast("HANG", from_handle="pm")
    assert grouped.call("group_dissolve", group="g")["state"] == "dissolved"
    assert grouped.open_sessions() == []
    [message] = grouped.gets("pm", 1)
    assert "the group was dissolved" in message["body"]
    refusal = grouped.daemon.refusal("group_status", group="g")
    assert refusal.code == "not_found"
    grouped.group(profiles=["bob"])
    grouped.daemon.kill()
    grouped.start()
    assert [*grouped.handles()] == ["bob"]


async def test_the_stream_has_all_groups_and_then_each_that_changes(grouped: Grouped) -> None:
    await trio.to_thread.run_sync(grouped.group)
    with trio.fail_after(GUARD_S):
        async with aegis.connect(grouped.daemon.root) as client, client.groups.follow() as stream:
            first: Any = await stream.__anext__()
            assert [each.group for each in first.groups] == ["g"]
            await client.groups.rename("g", "h")
            item: Any = await stream.__anext__()
            assert (item.group.group, item.group.aliases) == ("h", ["g"])
            sent = await client.groups.broadcast("h", WHO)
            while not (item.group.broadcast and item.group.broadcast.is_over):
                item = await stream.__anext__()
            assert item.group.broadcast.broadcast_id == sent.broadcast_id
            assert {*item.group.broadcast.replies.values()} == {"replied"}
            await client.groups.dissolve("h")
            while item.group.state != "dissolved":
                item = await stream.__anext__()


def test_the_blocking_client_has_groups(grouped: Grouped) -> None:
    with aegis.connect_sync(grouped.daemon.root) as client:
        client.groups.spawn_mixed("g", preset="three")
        client.groups.spawn("g", "bob", handle="eve")
        client.groups.broadcast("g", only("cid"), callback=False)
        found = client.groups.wait_any("g", timeout=GUARD_S)
        assert said(found.reduced or "") == "cid"
        assert client.groups.wait_all("g").metadata.members["eve"].status == "cancelled"
        assert client.groups.show("g").members[3].state is not None
        [order] = client.groups.orders("g").result
        assert (order.is_over, order.missing, len(order.order)) == (True, [], 1)
        assert [each.group for each in client.groups.list().result] == ["g"]
        assert client.groups.rename("g", "h").group == "h"
        assert client.groups.dissolve("h").state == "dissolved"


def test_the_command_line_has_groups(grouped: Grouped) -> None:
    cli = grouped.daemon.cli
    assert "ann" in cli("group", "spawn", "g", "--preset", "three").stdout
    done = cli("group", "broadcast", "--wait", "90000", "g", WHO)
    assert done.returncode == 0
    assert {"ann", "bob", "cid"} <= {*done.stdout.split()}
    sent = cli("group", "broadcast", "g", only("bob")).stdout.strip()
    for who in ("ann", "cid"):
        grouped.works(grouped.handles()[who])
    busy = cli("group", "broadcast", "g", WHO).stderr
    assert "wait with aegis-actors group wait, or" in busy
    assert "the others with aegis-actors group wait --any" in busy
    late = cli("group", "wait", "--timeout", "0.1", "g")
    assert (late.returncode, "pending (working)" in late.stderr) == (124, True)
    first = cli("group", "wait", "--any", "--timeout", "90000", "g")
    assert (first.returncode, said(first.stdout)) == (0, "bob")
    assert cli("group", "wait", "--broadcast", sent.lower(), "g").returncode == 1
    listed = cli("group", "orders", "g")
    newest, _, older = listed.stdout.partition("\n\n")
    assert sent in newest
    assert "bob" in newest
    assert older.count("ran 0:") == 3
    assert "cancelled" in listed.stderr
    only_older = cli("group", "orders", "g", "--before", sent.lower(), "--limit", "1").stdout
    assert (sent in only_older, only_older.strip()) == (False, older.strip())
    shown = cli("group", "show", "g").stdout
    assert re.search(r"bob +\S+ +replied", shown)
    assert cli("group", "spawn", "--handle", "x", "h", "ann", "bob").returncode == 2
    assert cli("group", "wait", "--keep-others", "g").returncode == 2
    assert "h" in cli("group", "rename", "g", "h").stdout
    assert "dissolved" in cli("group", "dissolve", "h").stdout


def test_the_commands_of_the_how_to_work(grouped: Grouped) -> None:
    lines = re.findall(r"^\$ aegis-actors (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(lines) >= 10
    for line in lines:
        words = shlex.split(line)
        done = grouped.daemon.cli(*words)
        assert done.returncode == 0, (line, done.stderr)
        if words[:2] == ["group", "list"]:
            page = PAGE.read_text("utf-8").split(f"$ aegis-actors {line}\n")[1].split("\n```")[0]
            assert done.stdout.split() == page.split()
    assert [each["group"] for each in grouped.call("group_list")["result"]] == ["review"]


def test_hostile_replies_are_shown_escaped(grouped: Grouped) -> None:
    grouped.group(profiles=["ann"])
    grouped.broadcast("SAY \x1b]0;evil\x07 \u202e done")
    grouped.wait()
    for words in (["wait", "g"], ["wait", "g", "--json"], ["show", "g"], ["show", "g", "--json"]):
        shown = grouped.daemon.cli("group", *words).stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(shown), words


def test_an_agent_that_is_killed_again_and_again_loses_its_own_replies_only(
    grouped: Grouped,
) -> None:
    grouped.group(profiles=["ann", "bob"])
    handles = grouped.handles()
    for _ in range(3):
        grouped.broadcast("RUN [ $WHO = bob ] || kill -9 $PPID; echo $WHO")
        found = grouped.wait()
        assert found["order"] == [handles["bob"]]
        assert found["metadata"]["members"][handles["ann"]]["status"] == "interrupted"
    for pid in agents_of(grouped.daemon):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # A process that dies while it starts is started again; one that dies idle starts with the next
    # turn; and a turn that is sent to it before its death is seen is interrupted.
    until(lambda: all_reply(grouped), "both agents reply")


def all_reply(grouped: Grouped) -> bool:
    grouped.broadcast(WHO)
    return len(grouped.wait()["order"]) == 2
