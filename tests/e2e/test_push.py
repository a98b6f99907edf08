"""Subscriptions to notifications in a real daemon: who may, what is kept, what is shown nowhere."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.harness import DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.fakes.push_service import PushBrowser

pytestmark = pytest.mark.real


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon for a copy of the root: there is none yet."""
    (tmp_path / "copies").mkdir()
    copy = DaemonProcess(tmp_path / "copies")
    shutil.rmtree(copy.root)
    yield copy
    copy.hang_up()
    if copy.root.exists() and copy.is_running:
        copy.stop()


@pytest.mark.long
def test_a_subscription_survives_and_its_keys_are_shown_nowhere(
    own_daemon: DaemonProcess, copied: DaemonProcess
) -> None:
    own_daemon.start("--port", "0", "--log-level", "debug", "--debug")
    browser = PushBrowser("/send/f1c80a2b77de4d0a")
    public = own_daemon.call("push_key")["public_key"]
    # Of nothing: the name of its service leads nowhere, and no message is to be tried.
    given = own_daemon.call("push_subscribe", **browser.keys, label="phone", requests=False)
    assert (given["service"], given["page"], given["problem"]) == ("push.example", None, "")
    assert own_daemon.call("push_list")["subscriptions"] == [given]
    listed = own_daemon.cli("push", "list").stdout
    assert [word in listed for word in (given["id"], "push.example", "phone")] == [True] * 3

    private = own_daemon.state.push_key.read_text().splitlines()[0]
    assert len(private) == 64
    assert stat.S_IMODE(own_daemon.state.push_key.stat().st_mode) == 0o600
    assert stat.S_IMODE(own_daemon.state.push.stat().st_mode) == 0o600
    secrets = [private, browser.endpoint, *list(browser.keys.values())[1:]]
    shown = [
        own_daemon.cli(*words).stdout
        for words in (["status"], ["tree"], ["push", "list", "--json"], ["doctor"])
    ]
    shown += [json.dumps(own_daemon.call(each)) for each in ("status", "tree")]
    assert [
        each for each in secrets if any(each in text for text in (own_daemon.log, *shown))
    ] == []

    assert own_daemon.stop() == 0
    own_daemon.start("--port", "0")
    assert own_daemon.call("push_key")["public_key"] == public
    assert own_daemon.call("push_list")["subscriptions"] == [given]
    assert own_daemon.cli("doctor").returncode == 0

    shutil.copytree(own_daemon.root, copied.root, ignore=lambda *_: ["aegis.sock"])
    copied.start("--port", "0", "--trust")
    assert copied.call("push_list")["subscriptions"] == []
    assert copied.call("push_key")["public_key"] != public

    assert own_daemon.cli("push", "remove", given["id"]).stdout == f"removed: {given['id']}\n"
    assert own_daemon.call("push_list")["subscriptions"] == []
    assert own_daemon.cli("push", "remove", "all").stdout == "nothing to remove\n"


@pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning")
async def test_only_a_person_subscribes_a_browser(own_daemon: DaemonProcess) -> None:
    await trio.to_thread.run_sync(own_daemon.start, "--port", "0")
    commands = {
        "push_key": {},
        "push_list": {},
        "push_remove": {"id": "all"},
        "push_subscribe": PushBrowser().keys,
    }
    async with connect_mcp_to(own_daemon, "auto") as client:
        for command, arguments in commands.items():
            result = await client.call_tool(f"aegis_{command}", arguments)
            assert "is for a person only" in str(result.content)
            refusal = await trio.to_thread.run_sync(
                partial(own_daemon.refusal, command, **arguments, from_handle="ann")
            )
            assert "is for a person only" in str(refusal)
    assert not own_daemon.state.push_key.exists()
    await trio.to_thread.run_sync(own_daemon.stop)
