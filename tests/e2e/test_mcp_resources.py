"""Ledgers and inboxes as MCP resources, with update notifications, in both eras."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
import trio
from mcp import Client
from mcp.shared.exceptions import MCPError

from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.servers.mcp.documents import without_nulls
from tests.e2e.conftest import Connect, NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal
from tests.e2e.watchers import watching

pytestmark = [
    pytest.mark.real,
    # The client's event streams are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning"),
    # That era has it, whatever the client says of the next one.
    pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed"),
]

each_era = pytest.mark.parametrize("era", ["legacy", "auto"])


def ledger(terminal: LiveTerminal) -> str:
    return f"aegis://terminals/{terminal.name}/ledger"


async def run(terminal: LiveTerminal, cmd: str) -> dict[str, Any]:
    """By another client than the one that watches."""
    return await trio.to_thread.run_sync(terminal.run, cmd)


@each_era
async def test_open_terminals_and_the_own_inbox_are_listed(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, handle: str, era: str
) -> None:
    async with connect_mcp(daemon, era, handle) as client:
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        assert {ledger(terminal), f"aegis://inbox/{handle}"} <= listed.keys()
        assert [uri for uri in listed if uri.startswith("aegis://inbox/")] == [
            f"aegis://inbox/{handle}"
        ]
        assert {each.mime_type for each in listed.values()} == {"application/json"}
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            "aegis://terminals/{name}/ledger",
            "aegis://inbox/{handle}",
            "aegis://canvases/{name}",
            "aegis://queues/{name}",
        ]
        capability = client.server_capabilities.resources
        assert capability is not None
        assert capability.subscribe
    async with connect_mcp(daemon, era) as operator:
        listed_uris = {each.uri for each in (await operator.list_resources()).resources}
        assert "aegis://inbox/human" in listed_uris
    await trio.to_thread.run_sync(terminal.close)
    async with connect_mcp(daemon, era, handle) as client:
        listed_uris = {each.uri for each in (await client.list_resources()).resources}
        assert ledger(terminal) not in listed_uris


@each_era
async def test_a_command_of_another_client_notifies_and_the_resource_has_its_record(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str, era: str
) -> None:
    async with watching(daemon, era, [ledger(terminal)], handle) as watcher:
        assert await watcher.read(ledger(terminal)) == {"result": []}
        record = await run(terminal, "echo one")
        assert await watcher.next() == ledger(terminal)
        assert await watcher.read(ledger(terminal)) == {"result": [record]}
        await run(terminal, "echo two")
        assert await watcher.next() == ledger(terminal)
        found = await watcher.read(ledger(terminal))
        assert [each["stdout"] for each in found["result"]] == ["one\n", "two\n"]


@each_era
async def test_a_message_notifies_its_reader_and_so_does_an_acknowledgement(
    daemon: DaemonProcess, handle: str, era: str
) -> None:
    uri = f"aegis://inbox/{handle}"

    def hand_off(text: str) -> None:
        daemon.call("handoff", target_handle=handle, context=text, from_handle="pm")

    async with watching(daemon, era, [uri], handle) as watcher:
        await trio.to_thread.run_sync(hand_off, "work")
        assert await watcher.next() == uri
        inbox = await watcher.read(uri)
        assert [each["body"] for each in inbox["messages"]] == ["work"]
        await watcher.client.call_tool("aegis_inbox_read", {"after": inbox["next"]})
        assert await watcher.next() == uri
        assert await watcher.read(uri) == {"messages": [], "next": None}


@each_era
async def test_only_what_is_watched_notifies(
    daemon: DaemonProcess, new_terminal: NewTerminal, era: str
) -> None:
    mine, other = await trio.to_thread.run_sync(lambda: (new_terminal(), new_terminal()))
    async with watching(daemon, era, [ledger(mine)]) as watcher:
        for _ in range(3):
            await run(other, "true")
        await run(mine, "true")
        assert await watcher.next() == ledger(mine)
        assert watcher.told() == []


@each_era
async def test_a_name_is_watched_as_it_was_spelled(
    daemon: DaemonProcess, terminal: LiveTerminal, era: str
) -> None:
    spelled = f"aegis://terminals/{terminal.name.upper()}/ledger"
    async with watching(daemon, era, [spelled, ledger(terminal)]) as watcher:
        await run(terminal, "true")
        assert {await watcher.next(), await watcher.next()} == {spelled, ledger(terminal)}
        assert len((await watcher.read(spelled))["result"]) == 1


async def test_who_unsubscribed_is_told_no_more(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    left, kept = await trio.to_thread.run_sync(lambda: (new_terminal(), new_terminal()))
    async with watching(daemon, "legacy", [ledger(left), ledger(kept)]) as watcher:
        await run(left, "true")
        assert await watcher.next() == ledger(left)
        await watcher.client.session.unsubscribe_resource(ledger(left))
        await run(left, "true")
        await run(kept, "true")
        assert await watcher.next() == ledger(kept)
        assert watcher.told() == []


async def test_who_listens_no_more_is_told_no_more_and_may_listen_again(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect
) -> None:
    async with connect_mcp(daemon, "auto") as client:
        for number in range(3):
            async with client.listen(resource_subscriptions=[ledger(terminal)]) as subscription:
                await run(terminal, f"echo {number}")
                with trio.fail_after(GUARD_S):
                    assert (await anext(subscription)).uri == ledger(terminal)  # type: ignore[union-attr]


@each_era
@pytest.mark.parametrize(
    ("uri", "code", "sentence"),
    [
        ("aegis://inbox/human", "forbidden", "aegis://inbox/human is not yours: this connection "),
        ("aegis://terminals/no-such/ledger", "not_found", "there is no terminal 'no-such'"),
        ("aegis://terminals/a b/ledger", "not_found", "there is no resource 'aegis://terminals/a"),
        ("file:///etc/passwd", "not_found", "there is no resource 'file:///etc/passwd'; there are"),
        ("x" * 5000, "not_found", "there is no resource 'xxx"),
    ],
)
async def test_what_is_foreign_or_unknown_is_refused_with_one_sentence(
    daemon: DaemonProcess,
    connect_mcp: Connect,
    handle: str,
    era: str,
    uri: str,
    code: str,
    sentence: str,
) -> None:
    async def subscribe(client: Any) -> None:
        if era == "legacy":
            await client.session.subscribe_resource(uri)
        else:
            async with client.listen(resource_subscriptions=[uri]):
                pass

    async with connect_mcp(daemon, era, handle) as client:
        for refused in (lambda: client.read_resource(uri), lambda: subscribe(client)):
            with pytest.raises(MCPError) as caught:
                await refused()
            assert caught.value.error.message.startswith(sentence)
            assert len(caught.value.error.message) < 400
            assert caught.value.error.code == types.INVALID_PARAMS
            assert caught.value.error.data == {"code": code, "uri": uri}
        assert not (await client.call_tool("aegis_term_list", {})).is_error


@each_era
async def test_the_operator_may_read_and_watch_any_inbox(
    daemon: DaemonProcess, handle: str, era: str
) -> None:
    uri = f"aegis://inbox/{handle}"
    daemon.call("session_new", handle=handle)
    async with watching(daemon, era, [uri]) as watcher:
        daemon.call("handoff", target_handle=handle, context="work", from_handle="pm")
        assert await watcher.next() == uri
        assert [each["body"] for each in (await watcher.read(uri))["messages"]] == ["work"]


async def text_of(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


@each_era
async def test_a_long_ledger_is_cut_to_its_newest_records(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, era: str
) -> None:
    for _ in range(20):
        await run(terminal, "seq 100000")
    async with connect_mcp(daemon, era) as client:
        text = await text_of(client, ledger(terminal))
    assert MAX_REPLY_BYTES * 0.7 < len(text) <= MAX_REPLY_BYTES
    found = json.loads(text)
    assert found["more"] is True
    seqs = [each["seq"] for each in found["result"]]
    assert seqs == list(range(seqs[0], 20))


@each_era
async def test_a_long_inbox_is_cut_to_its_oldest_messages(
    daemon: DaemonProcess, connect_mcp: Connect, handle: str, era: str
) -> None:
    daemon.call("session_new", handle=handle)
    for number in range(9):
        text = f"{number}" + "x" * 200_000
        daemon.call("handoff", target_handle=handle, context=text, from_handle="pm")
    uri = f"aegis://inbox/{handle}"
    async with connect_mcp(daemon, era, handle) as client:
        found = json.loads(await text_of(client, uri))
        assert [each["body"][0] for each in found["messages"]] == ["0", "1"]
        assert (found["more"], found["next"]) == (True, found["messages"][-1]["id"])
        await client.call_tool("aegis_inbox_read", {"after": found["next"], "limit": 1})
        rest = json.loads(await text_of(client, uri))
        assert rest["messages"][0]["body"][0] == "2"


@each_era
async def test_a_reader_of_a_long_inbox_gets_what_its_client_accepts_and_the_rest_stays_unread(
    daemon: DaemonProcess, connect_mcp: Connect, handle: str, era: str
) -> None:
    daemon.call("session_new", handle=handle)
    bodies = [f"{number}" + "x" * 100_000 for number in range(7)]
    for body in [*bodies, "日" * 262_144, "last"]:
        daemon.call("handoff", target_handle=handle, context=body, from_handle="pm")
    async with connect_mcp(daemon, era, handle) as client:

        async def read(tool: str, **arguments: object) -> tuple[list[str], str | None, str]:
            found = await client.call_tool(tool, arguments)
            assert len(found.model_dump_json(by_alias=True, exclude_none=True)) < 1024 * 1024
            texts = [each.text for each in found.content if isinstance(each, types.TextContent)]
            reply = found.structured_content
            assert reply is not None
            assert json.loads(texts[0])["messages"][0] == without_nulls(reply["messages"][0])
            bodies = [each["body"] for each in reply["messages"]]
            return bodies, reply["next"], "".join(texts[1:])

        left_out = "newer messages do not fit: acknowledge these first, or ask for fewer (limit)"
        newest, unshown, said = await read("aegis_inbox_read", unread=False, limit=8)
        assert (newest, unshown, said) == (bodies[1:3], None, left_out), "the oldest is unread"
        shown, cursor = list[str](), None
        for tool in itertools.cycle(("aegis_inbox_read", "aegis_inbox_wait")):
            messages, cursor, said = await read(tool, **({"after": cursor} if cursor else {}))
            shown += messages
            if not said:
                break
            assert said == left_out
        assert (shown[:7], shown[8:]) == (bodies, ["last"])
        text, _, notice = shown[7].partition("\n")
        assert text == "日" * len(text)
        assert notice == (
            f"[shortened to {len(text)} of 262144 characters: `aegis-actors inbox read --all` "
            "prints it whole]"
        )
    whole = daemon.call("inbox_read", from_handle=handle, unread=False, limit=2)["messages"][0]
    assert whole["body"] == "日" * 262_144


async def frames(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """The messages of an event stream."""
    async for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


class RawSession:
    """A session of the older era without any library: its stream is opened when a test says."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self.headers = {"accept": "application/json, text/event-stream"}
        self._ids = itertools.count(1)

    async def begin(self) -> None:
        client = {"name": "raw", "version": "0"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        await self.request("initialize", **version)
        await self._post({"method": "notifications/initialized"})

    async def request(self, method: str, **params: object) -> None:
        response = await self._post({"id": next(self._ids), "method": method, "params": params})
        assert "result" in response.json(), response.text
        self.headers |= {"mcp-session-id": response.headers["mcp-session-id"]}

    async def _post(self, message: dict[str, Any]) -> httpx2.Response:
        body = {"jsonrpc": "2.0", **message}
        return await self._http.post(self._url, json=body, headers=self.headers)

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        async with self._http.stream("GET", self._url, headers=self.headers) as response:
            assert response.status_code == 200
            yield frames(response.aiter_lines())


@pytest.fixture
async def raw(daemon: DaemonProcess) -> AsyncIterator[RawSession]:
    headers = {"authorization": f"Bearer {daemon.endpoint.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=GUARD_S) as http:
        session = RawSession(http, daemon.endpoint.mcp)
        await session.begin()
        yield session


async def test_what_changed_while_there_was_no_stream_is_told_when_it_opens(
    terminal: LiveTerminal, raw: RawSession
) -> None:
    await raw.request("resources/subscribe", uri=ledger(terminal))
    for _ in range(3):
        await run(terminal, "true")
    for _ in range(2):
        async with raw.stream() as told:
            with trio.fail_after(GUARD_S):
                frame = await anext(told)
            assert frame["method"] == "notifications/resources/updated"
            assert frame["params"]["uri"] == ledger(terminal)
        await run(terminal, "true")


async def test_one_who_never_reads_its_stream_costs_the_others_nothing(
    daemon: DaemonProcess, terminal: LiveTerminal, raw: RawSession
) -> None:
    await raw.request("resources/subscribe", uri=ledger(terminal))
    async with raw.stream(), watching(daemon, "auto", [ledger(terminal)]) as watcher:
        for _ in range(100):
            await run(terminal, "true")
            assert await watcher.next() == ledger(terminal)


async def test_one_client_may_watch_so_much_and_no_more(
    daemon: DaemonProcess, handle: str, connect_mcp: Connect
) -> None:
    names = [f"{handle}{'x' * number}" for number in range(40)]
    own = [f"aegis://inbox/{name}" for name in names]
    async with connect_mcp(daemon, "auto") as client:
        async with client.listen(resource_subscriptions=own) as subscription:
            assert subscription.honored.resource_subscriptions == own
        with pytest.raises(MCPError, match="at most 256 resources"):
            async with client.listen(resource_subscriptions=own * 7):
                pass


@each_era
async def test_a_purge_notifies_and_leaves_nothing_to_read(
    daemon: DaemonProcess, terminal: LiveTerminal, era: str
) -> None:
    async with watching(daemon, era, [ledger(terminal)]) as watcher:
        await trio.to_thread.run_sync(lambda: terminal.close(purge=True))
        assert await watcher.next() == ledger(terminal)
        with pytest.raises(MCPError, match=f"there is no terminal '{terminal.name}'"):
            await watcher.read(ledger(terminal))


@each_era
async def test_one_who_watches_holds_up_no_stop(own_daemon: DaemonProcess, era: str) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    with trio.fail_after(GUARD_S):
        try:
            async with watching(own_daemon, era, [ledger(terminal)]) as watcher:
                await run(terminal, "true")
                assert await watcher.next() == ledger(terminal)
                assert await trio.to_thread.run_sync(own_daemon.stop) == 0
        except* Exception:
            pass
    assert not own_daemon.is_running
    own_daemon.check_left_nothing()


@each_era
async def test_the_names_of_an_address_are_completed(
    daemon: DaemonProcess, new_terminal: NewTerminal, connect_mcp: Connect, handle: str, era: str
) -> None:
    one, other = await trio.to_thread.run_sync(lambda: (new_terminal(), new_terminal()))
    ledgers = types.ResourceTemplateReference(uri="aegis://terminals/{name}/ledger")
    inboxes = types.ResourceTemplateReference(uri="aegis://inbox/{handle}")

    async def completed(client: Client, ref: Any, name: str, value: str) -> list[str]:
        found = (await client.complete(ref, {"name": name, "value": value})).completion
        assert (found.total, found.has_more) == (len(found.values), False)
        return found.values

    async with connect_mcp(daemon, era, handle) as client:
        await client.call_tool("aegis_term_list", {})
        assert {one.name, other.name} <= set(await completed(client, ledgers, "name", ""))
        assert await completed(client, ledgers, "name", one.name.upper()) == [one.name]
        assert await completed(client, inboxes, "handle", handle[:3]) == [handle]
        assert await completed(client, inboxes, "handle", "human") == []
        assert await completed(client, ledgers, "handle", "") == []
        assert await completed(client, types.PromptReference(name="any"), "x", "") == []
    async with connect_mcp(daemon, era) as operator:
        assert await completed(operator, inboxes, "handle", "HUM") == ["human"]
        assert handle in await completed(operator, inboxes, "handle", "")
