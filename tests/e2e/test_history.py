"""The history of a real daemon: commands, tasks and requests, live and archived."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_queues import Queued
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def queued(own_daemon: DaemonProcess) -> Iterator[Queued]:
    yield Queued(own_daemon)
    own_daemon.stop()


def test_commands_and_tasks_are_found_newest_first(queued: Queued) -> None:
    path = queued.daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 1, "days": 0}}))
    queued.daemon.stop()
    queued.start()
    queued.call("term_spawn", name="one")
    queued.call("term_run", name="one", cmd="echo first")
    tasks = [queued.add(f"SAY task {each}") for each in range(3)]
    for task in tasks:
        queued.ends(task)
    queued.call("term_run", name="one", cmd="(exit 3)")
    queued.call("term_close", name="one")

    def found(**arguments: object) -> list[tuple[str, str]]:
        reply = queued.call("history", **arguments)
        return [(each["kind"], each["text"]) for each in reply["result"]]

    until(lambda: len(queued.call("task_list")["result"]) == 1, "the others are archived")
    everything = [
        ("command", "(exit 3)"),
        *(("task", f"SAY task {each}") for each in (2, 1, 0)),
        ("command", "echo first"),
    ]
    assert found() == everything
    assert [each["archived"] for each in queued.call("history", kind="task")["result"]] == [
        False,
        True,
        True,
    ]
    assert found(exit_code=3) == everything[:1]
    assert found(word="TASK 1") == [everything[2]]
    assert found(name="ONE", kind="command") == [everything[0], everything[-1]]
    assert found(since="2999-01-01T00:00Z") == []
    assert found(until="2000-01-01T00:00Z") == []
    first = queued.call("history", limit=2)
    second = queued.call("history", limit=10, more=first["more"])
    spans = [(each["began"], each["at"]) for each in first["result"] + second["result"]]
    assert all(began <= at for began, at in spans), spans
    started = {task: queued.task(task)["started"] for task in tasks}
    assert {e["id"]: e["began"] for e in queued.call("history", kind="task")["result"]} == started
    texts = [each["text"] for each in first["result"] + second["result"]]
    assert texts == [text for _, text in everything]
    assert second["more"] is None
    printed = queued.daemon.cli("history", "echo").stdout
    assert "command one 0  exit 0  echo first" in printed
    lines = queued.daemon.cli("history", "--kind", "task", "--json").stdout.splitlines()
    assert [json.loads(each)["id"] for each in lines] == [*reversed(tasks)]
    odd = queued.daemon.root / ".aegis/state/terminals/odd/ledger.jsonl"
    odd.mkdir(parents=True)
    done = queued.daemon.cli("history", "echo")
    odd.rmdir()
    odd.parent.rmdir()
    assert (done.returncode, done.stdout) == (1, printed)
    assert "left out" in done.stderr
    assert "terminals/odd/ledger.jsonl" in done.stderr


def test_a_request_is_answered_from_the_archive_after_a_kill(queued: Queued) -> None:
    path = queued.daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 0, "days": 0}}))
    queued.daemon.stop()
    queued.start()
    ids = []
    for number in range(3):
        asked = queued.call("ask_human", question=f"Is it {number}?", wait_s=0, from_handle="ann")
        ids.append(asked["request_id"])
        printed = queued.daemon.cli("request", "answer", ids[-1][:8], "allow", "--set", "1=yes")
        assert printed.returncode == 0
    answered = queued.call("request_list", id=ids[0])["requests"][0]

    def archived() -> list[str]:
        found = queued.call("history", kind="request")["result"]
        return [each["id"] for each in found if each["archived"]]

    until(lambda: len(archived()) == 3, "all are archived")
    asked_at = [each["began"] for each in queued.call("history", kind="request")["result"]]
    assert asked_at == sorted(asked_at, reverse=True)
    assert answered["created"] == asked_at[-1]
    assert queued.call("request_list", state="all")["requests"] == []
    queued.daemon.kill()
    queued.start()
    assert queued.call("request_list", id=ids[0])["requests"] == [answered]
    assert "Is it 0?" in queued.daemon.cli("request", "show", ids[0]).stdout
    reply = queued.call("request_answer", id=ids[0], digest=answered["digest"], answer="deny")
    assert reply["outcome"] == "already_answered"
    assert archived() == [*reversed(ids)]
    found = queued.daemon.cli("history", "--kind", "request", "is it 1").stdout
    assert f"request ann {ids[1]}  answered  ask_human: ann asks: Is it 1?" in found


def test_messages_are_found_by_who_may_read_them_after_a_kill(queued: Queued) -> None:
    for number in range(3):
        text = f"note {number}"
        queued.call("inbox_read", from_handle="ann")
        queued.call("handoff", target_handle="ann", context=text, from_handle="bob")
    sent = queued.call("inbox_read", from_handle="ann", limit=2)
    queued.call("inbox_read", from_handle="ann", after=sent["next"])
    queued.daemon.kill()
    queued.start()
    found = queued.call("history", kind="message", name="ANN")["result"]
    assert {each["began"] for each in found} == {None}
    assert [(each["text"], each["by"], each["outcome"]) for each in found] == [
        ("note 2", "agent:bob", "unread"),
        ("note 1", "agent:bob", "read"),
        ("note 0", "agent:bob", "read"),
    ]
    assert [each["id"] for each in reversed(found)][:2] == [each["id"] for each in sent["messages"]]
    assert queued.call("history", kind="message", from_handle="ann")["result"] == found
    assert queued.call("history", kind="message", name="ann", from_handle="bob")["result"] == []
    printed = queued.daemon.cli("history", "--kind", "message", "NOTE 1").stdout
    assert f"message ann {found[1]['id']}  read  note 1" in printed


@pytest.mark.long
def test_a_copy_that_is_trusted_has_the_archive_and_the_old_records(
    queued: Queued, tmp_path: Path
) -> None:
    path = queued.daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 1, "days": 0}}))
    queued.daemon.stop()
    queued.start()
    tasks = [queued.add(f"SAY task {each}", key=f"key {each}") for each in range(3)]
    for task in tasks:
        queued.ends(task)
    until(lambda: len(queued.call("task_list")["result"]) == 1, "the others are archived")
    terminal = queued.daemon.terminal("one")
    for number in range(75):
        terminal.run(f"head -c 100000 /dev/zero | tr '\\0' x; echo {number}")
    until(lambda: any(terminal.directory.glob("*.jsonl.gz")), "an old segment is compressed")
    before = everything(queued, tasks)
    assert len(before[0]) == 75
    queued.daemon.stop()
    (tmp_path / "copies").mkdir()
    copied = DaemonProcess(tmp_path / "copies")
    shutil.rmtree(copied.root)
    shutil.copytree(queued.daemon.root, copied.root)
    copy = Queued(copied)
    try:
        assert everything(copy, tasks) == before
        assert [copy.add(f"SAY task {each}", key=f"key {each}") for each in range(3)] == tasks
        copy.call("term_run", name="one", cmd="echo last", timeout=60)
        assert everything(copy, tasks)[0][-1] == "last\n"
    finally:
        copied.stop()


def everything(queued: Queued, tasks: list[str]) -> tuple[list[str], list[Any], list[Any]]:
    """The output of all commands of a terminal, the history, and these tasks."""
    records, more = list[dict[str, Any]](), True
    while more:
        since = records[-1]["seq"] if records else -1
        page = queued.call("term_read", name="one", since_seq=since)
        records, more = [*records, *page["result"]], page.get("more", False)
    page = queued.call("history", limit=200)
    found = page["result"]
    while page["more"] is not None:
        page = queued.call("history", limit=200, more=page["more"])
        found += page["result"]
    return [each["stdout"] for each in records], found, [queued.task(each) for each in tasks]
