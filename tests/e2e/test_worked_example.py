"""The worked example: two agents, one terminal, one wake; over MCP and on the command line."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client

from aegis.servers.mcp.documents import without_nulls
from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.mcp_client import CONNECTIONS

pytestmark = [
    pytest.mark.real,
    pytest.mark.every_python,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

ERAS = ["legacy", "auto"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with tests of its own."""
    root = tmp_path / "wallet"
    (root / "tests").mkdir(parents=True)
    (root / "wallet.py").write_text(
        "class Wallet:\n"
        "    def __init__(self):\n"
        "        self.cents = 0\n"
        "    def pay_in(self, cents):\n"
        "        if cents <= 0:\n"
        "            raise ValueError('pay in more than nothing')\n"
        "        self.cents += cents\n"
    )
    (root / "tests" / "test_wallet.py").write_text(
        "import pytest\n"
        "from wallet import Wallet\n"
        "def test_a_new_wallet_is_empty():\n"
        "    assert Wallet().cents == 0\n"
        "@pytest.mark.parametrize('cents', [1, 5, 100])\n"
        "def test_what_is_paid_in_is_there(cents):\n"
        "    wallet = Wallet()\n"
        "    wallet.pay_in(cents)\n"
        "    assert wallet.cents == cents\n"
        "@pytest.mark.parametrize('cents', [0, -1])\n"
        "def test_nothing_cannot_be_paid_in(cents):\n"
        "    with pytest.raises(ValueError):\n"
        "        Wallet().pay_in(cents)\n"
    )
    (root / "conftest.py").write_text("")
    return root


async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    as_text = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert as_text == without_nulls(result.structured_content)
    return dict(result.structured_content)


def wake_text(terminal: str, record: dict[str, Any]) -> str:
    """What the contract says a subscriber gets."""
    return "\n".join(
        [
            f"> from term:{terminal} · {record['finished_at'][:19]}Z",
            f"$ {record['cmd']} · run by {record['writer']}",
            f"exit {record['exit']} · {record['duration_s']:.2f}s",
            "──",
            *record["stdout"].splitlines()[-8:],
        ]
    )


def check_tests_passed(record: dict[str, Any], writer: str) -> None:
    assert (record["cmd"], record["writer"], record["exit"]) == ("pytest -q", writer, 0)
    assert re.search(r"^6 passed in \d+\.\d\ds$", record["stdout"], re.MULTILINE)
    assert (record["stderr"], record["timed_out"], record["end"]) == ("", False, "exited")


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("by", CONNECTIONS)
async def test_pm_is_woken_when_builder_has_run_the_tests(
    daemon: DaemonProcess, project: Path, mode: str, by: str
) -> None:
    connect_mcp: Connect = CONNECTIONS[by]
    pm, builder, build = f"pm-{by}-{mode}", f"builder-{by}-{mode}", f"build-{by}-{mode}"
    records = []

    async def build_when_told(client: Client, *, task_status: trio.TaskStatus[None]) -> None:
        await called(client, "aegis_term_list")  # being here is what makes a handle known
        task_status.started()
        inbox = await called(client, "aegis_inbox_wait")
        [handoff] = inbox["messages"]
        assert handoff["sender"] == f"agent:{pm}"
        assert handoff["body"] == f"run pytest in terminal '{build}'"
        records.append(await called(client, "aegis_term_run", name=build, cmd="pytest -q"))
        later = await called(client, "aegis_inbox_wait", after=inbox["next"], timeout=0.3)
        assert later == {"messages": [], "next": None}

    with trio.fail_after(GUARD_S):
        async with (
            connect_mcp(daemon, mode, pm) as as_pm,
            connect_mcp(daemon, mode, builder) as as_builder,
            trio.open_nursery() as nursery,
        ):
            spawned = await called(as_pm, "aegis_term_spawn", name=build, cwd=str(project))
            assert (spawned["name"], spawned["state"]) == (build, "idle")
            subscribed = await called(as_pm, "aegis_term_subscribe", name=build)
            assert subscribed == {"ok": True, "subscribers": [pm]}
            await nursery.start(build_when_told, as_builder)
            task = f"run pytest in terminal '{build}'"
            await called(as_pm, "aegis_handoff", target_handle=builder, context=task)
            woken = await called(as_pm, "aegis_inbox_wait")
        async with connect_mcp(daemon, mode, pm) as as_pm:
            seen = await called(as_pm, "aegis_inbox_read")
            assert [each["id"] for each in seen["messages"]] == [woken["next"]]
            assert await called(as_pm, "aegis_inbox_read", after=woken["next"]) == {
                "messages": [],
                "next": None,
            }
            read = await called(as_pm, "aegis_term_read", name=build)
    [record] = records
    check_tests_passed(record, f"agent:{builder}")
    assert read == {"result": [record], "running": None}
    [message] = woken["messages"]
    assert message["text"] == wake_text(build, record)
    assert message["sender"] == f"term:{build}"
    assert re.fullmatch(rf"term:{build}/[^/]+/0/{pm}", message["id"])


@pytest.mark.parametrize("mode", ERAS)
async def test_a_command_that_takes_too_long_is_interrupted_through_the_raw_channel(
    daemon: DaemonProcess, connect_mcp: Connect, mode: str
) -> None:
    builder, build = f"breaker-{mode}", f"long-{mode}"
    with trio.fail_after(GUARD_S):
        async with connect_mcp(daemon, mode, builder) as client:
            await called(client, "aegis_term_spawn", name=build)
            record = await called(client, "aegis_term_run", name=build, cmd="sleep 30", timeout=3)
            assert (record["timed_out"], record["exit"], record["end"]) == (True, None, None)
            await called(client, "aegis_term_keys", name=build, keys="\x03")
            following = await called(client, "aegis_term_run", name=build, cmd="echo next")
            assert following["stdout"] == "next\n"
            [first, _] = (await called(client, "aegis_term_read", name=build))["result"]
    assert (first["seq"], first["exit"], first["timed_out"]) == (record["seq"], 130, True)


async def test_the_older_and_the_newer_era_and_the_line_protocol_share_one_terminal(
    daemon: DaemonProcess, connect_mcp: Connect
) -> None:
    with trio.fail_after(GUARD_S):
        async with connect_mcp(daemon, "legacy", "old") as old, connect_mcp(daemon, "auto") as new:
            await called(old, "aegis_term_spawn", name="mixed")
            await called(new, "aegis_term_run", name="mixed", cmd="x=1")
            await called(new, "aegis_term_run", name="mixed", cmd="y=2", from_handle="bob")
            daemon.call("term_run", name="mixed", cmd="z=3", from_handle="eve")
            record = await called(old, "aegis_term_run", name="mixed", cmd="echo $x$y$z")
            writers = [
                each["writer"]
                for each in (await called(new, "aegis_term_read", name="mixed"))["result"]
            ]
    assert record["stdout"] == "123\n"
    assert writers == ["human", "agent:bob", "agent:eve", "agent:old"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_session_url_speaks_for_its_handle_alone(
    daemon: DaemonProcess, connect_mcp: Connect, mode: str
) -> None:
    alice = f"alice-{mode}"
    with trio.fail_after(GUARD_S):
        async with connect_mcp(daemon, mode, alice) as client:
            result = await client.call_tool("aegis_inbox_read", {"from_handle": "bob"})
            assert result.is_error
            assert f"belongs to '{alice}'" in result.content[0].text  # type: ignore[union-attr]
            for tool in ("aegis_down", "aegis_session_new", "aegis_status", "aegis_tree"):
                assert (await client.call_tool(tool, {})).is_error


def test_the_same_example_on_the_command_line(daemon: DaemonProcess, project: Path) -> None:
    def aegis(*words: str) -> str:
        done = daemon.cli(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    aegis("session", "new", "--handle", "builder")
    aegis("--as", "pm", "term", "spawn", "build", "--cwd", str(project))
    assert aegis("--as", "pm", "term", "subscribe", "build") == "subscribers: pm\n"
    aegis("--as", "pm", "inbox", "send", "builder", "run pytest in terminal 'build'")
    told = aegis("--as", "builder", "inbox", "wait")
    assert told.startswith("> from agent:pm · ")
    assert told.endswith("\nrun pytest in terminal 'build'\n")
    waiting = subprocess.Popen(
        [*daemon.program, "--as", "pm", "inbox", "wait"],
        env=daemon.environment,
        cwd=daemon.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output = aegis("--as", "builder", "term", "run", "build", "pytest -q")
    assert "6 passed" in output
    woken, acknowledge = waiting.communicate(timeout=GUARD_S)
    [record] = daemon.json("term", "read", "build", "--json")["result"]
    check_tests_passed(record, "agent:builder")
    assert record["stdout"] == output
    assert woken == wake_text("build", record) + "\n"
    _, _, after = acknowledge.strip().partition("--after ")
    assert aegis("--as", "pm", "inbox", "read", "--after", after) == ""
    [handoff] = daemon.json("--as", "builder", "inbox", "read", "--json")["messages"]
    assert handoff["sender"] == "agent:pm"
    aegis("term", "close", "build")


def test_a_handle_is_known_once_it_was_given_a_session(daemon: DaemonProcess) -> None:
    assert daemon.refusal("handoff", target_handle="carol", context="x").code == "not_found"
    daemon.call("session_new", handle="carol")
    assert daemon.call("handoff", target_handle="Carol", context="x")["status"] == "queued"
    [message] = daemon.call("inbox_read", from_handle="carol")["messages"]
    assert (message["sender"], message["body"]) == ("human", "x")


def test_the_command_line_exits_with_the_exit_code_of_the_command(daemon: DaemonProcess) -> None:
    assert daemon.cli("term", "spawn", "codes").returncode == 0
    for code in (0, 1, 42, 255):
        done = daemon.cli("term", "run", "codes", f"(exit {code})")
        assert (done.returncode, done.stdout) == (code, "")
    slow = daemon.cli("term", "run", "--timeout", "0.2", "codes", "read x")
    assert slow.returncode == 125
    assert "is still running" in slow.stderr
    assert daemon.cli("term", "keys", "codes", r"\x03").returncode == 0
    assert daemon.cli("term", "run", "nowhere", "true").returncode == 125
