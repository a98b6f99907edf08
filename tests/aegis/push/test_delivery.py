"""One message, at a push service with TLS; and at addresses that must never be reached."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, Literal

import pytest
import trio

from aegis.protocol.inboxes import Message
from aegis.push import delivery as sending
from aegis.push.delivery import PushDelivery, PushOutcome
from aegis.push.network import PushNetwork
from aegis.push.notices import (
    MAX_PLAIN_BYTES,
    PushNotice,
    message_notice,
    request_notice,
    settled_notice,
)
from aegis.push.rows import PushClient, client_id
from aegis.push.vapid import open_vapid_key
from tests.aegis.tui.examples import NOON, request
from tests.fakes.push_service import PushBrowser, PushService, ServiceNetwork, push_service

NOTICE = PushNotice(about="r1", tag="r1", title="ann waits for you", body="Bash: ls")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PushService]:
    with push_service(tmp_path) as running:
        yield running


def client_of(browser: PushBrowser) -> PushClient:
    return PushClient(id=client_id(browser.endpoint), **browser.keys)


async def send(
    network: PushNetwork, tmp_path: Path, browser: PushBrowser, notice: PushNotice = NOTICE
) -> PushOutcome:
    delivery = PushDelivery(open_vapid_key(tmp_path / "push.key", None), network)
    with trio.fail_after(60):
        return await delivery.send(client_of(browser), notice)


async def test_a_push_service_gets_the_message_and_nothing_else(
    service: PushService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    browser = PushBrowser()
    for _ in range(2):  # the cookie of the first answer is not sent back
        assert await send(service.network(), tmp_path, browser) == PushOutcome(result="sent")
    for message in service.received:
        assert message.headers.keys() == {
            *("host", "authorization", "content-encoding", "content-type", "content-length"),
            *("ttl", "urgency", "topic"),
        }
        assert message.headers["host"] == "push.example"
        assert message.headers["content-encoding"] == "aes128gcm"
        assert message.headers["ttl"] == "43200"
        assert message.headers["topic"].isalnum()
        assert len(message.headers["topic"]) == 32
        assert "ann" not in str(message.headers)
    assert service.of(browser)[0] == {
        "v": 1,
        "tag": "r1",
        "title": "ann waits for you",
        "body": "Bash: ls",
        "go": "#/home",
        "at": "",
        "settled": False,
    }


@pytest.mark.parametrize(
    ("status", "headers", "result", "retry_s"),
    [
        (200, {}, "sent", 0),
        (202, {}, "sent", 0),
        (404, {}, "gone", 0),
        (410, {}, "gone", 0),
        (429, {"Retry-After": "17"}, "again", 17),
        (429, {"Retry-After": "1e9"}, "again", 3600),
        (429, {"Retry-After": "nan"}, "again", 0),
        (503, {"Retry-After": "-4"}, "again", 0),
        (500, {"Retry-After": "soon"}, "again", 0),
        (301, {"Location": "https://push.example/other"}, "refused", 0),
        (307, {"Location": "http://127.0.0.1/"}, "refused", 0),
        (400, {}, "refused", 0),
        (403, {}, "refused", 0),
        (413, {}, "refused", 0),
    ],
)
async def test_what_a_push_service_answers(
    service: PushService,
    tmp_path: Path,
    status: int,
    headers: dict[str, str],
    result: str,
    retry_s: float,
) -> None:
    service.answers.append((status, headers))
    outcome = await send(service.network(), tmp_path, PushBrowser())
    assert (outcome.result, outcome.retry_s) == (result, retry_s)
    assert "/send/" not in outcome.why  # the address is a key
    assert len(service.received) == 1  # no redirect was followed


async def test_a_moment_to_retry_at_is_read(service: PushService, tmp_path: Path) -> None:
    service.answers.append((503, {"Retry-After": formatdate(time.time() + 600, usegmt=True)}))
    outcome = await send(service.network(), tmp_path, PushBrowser())
    assert 300 < outcome.retry_s <= 600


class HostileNames(PushNetwork):
    """Names with these addresses; what may be reached is decided as in the product."""

    def __init__(self, found: list[str]) -> None:
        self._found = found

    async def lookup(self, host: str) -> list[str]:
        return self._found


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        ["10.0.0.7"],
        ["169.254.169.254"],
        ["100.64.1.1"],
        ["::1"],
        ["fe80::1"],
        ["::ffff:127.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["224.0.0.251"],
    ],
)
async def test_a_name_with_an_address_that_is_not_public_is_never_connected_to(
    tmp_path: Path, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connected(*_: object) -> None:
        raise AssertionError("it connected")

    monkeypatch.setattr(trio, "open_tcp_stream", connected)
    outcome = await send(HostileNames(found), tmp_path, PushBrowser())
    assert (outcome.result, "no public address" in outcome.why) == ("refused", True)


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    service: PushService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library that connects looks no name up: its answer could be another one."""
    network = service.network()
    assert isinstance(network, ServiceNetwork)

    async def lookup(host: object, *rest: Any, **more: Any) -> object:
        assert host == "127.0.0.1"
        return await looked_up(host, *rest, **more)

    looked_up = trio.socket.getaddrinfo
    monkeypatch.setattr(trio.socket, "getaddrinfo", lookup)
    assert (await send(network, tmp_path, PushBrowser())).result == "sent"
    assert network.looked_up == ["push.example"]


async def test_a_certificate_of_another_name_is_refused(
    service: PushService, tmp_path: Path
) -> None:
    browser = PushBrowser()
    browser.endpoint = "https://other.example/send/phone"
    outcome = await send(service.network(), tmp_path, browser)
    assert (outcome.result, outcome.why) == ("again", "other.example: ConnectError")
    assert service.received == []


async def test_a_service_that_does_not_answer_costs_a_bounded_time(
    tmp_path: Path, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "STEP_S", 0.2)
    network = service.network()
    with trio.socket.socket() as silent:
        await silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        network.port = silent.getsockname()[1]
        outcome = await send(network, tmp_path, PushBrowser())
    assert (outcome.result, outcome.why) == ("again", "push.example: ConnectTimeout")


async def test_a_service_that_sends_a_byte_now_and_then_costs_a_bounded_time(
    tmp_path: Path, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SEND_S", 1.0)
    service.dribbles = True
    outcome = await send(service.network(), tmp_path, PushBrowser())
    assert (outcome.result, outcome.why) == ("again", "push.example: no answer in 1 s")


async def test_an_endless_answer_is_not_read(tmp_path: Path, service: PushService) -> None:
    """Its head decides; the rest is left where it is."""
    service.answers.append((201, {"Content-Length": "1000000000000"}))
    assert (await send(service.network(), tmp_path, PushBrowser())).result == "sent"


def test_a_notice_says_what_waits_in_bounds() -> None:
    notice = request_notice(request(handle="ann", input={"command": "x" * 9_000}, title="Bash"))
    assert (notice.title, notice.tag, notice.urgency) == ("ann waits for you", "0" * 12, "high")
    assert notice.body.startswith("Bash: xxx")
    assert notice.body.endswith("…")
    hidden = notice.hidden().content()
    assert b"ann" not in hidden
    assert b"Bash" not in hidden
    assert b"Something waits for you" in hidden
    assert settled_notice("r1").topic == PushNotice(about="r1", tag="r1", title="").topic


@pytest.mark.parametrize("text", ["🟡" * 4_000, "\u202e" * 4_000, "\x1b[31m" * 900, "\ud800" * 999])
def test_a_hostile_text_is_escaped_and_cut_between_characters(text: str) -> None:
    message = Message(id="m", sender="agent:ann", body=text, text=text, timestamp=NOON)
    content = message_notice(message).content()
    assert len(content) <= MAX_PLAIN_BYTES
    content.decode()
    whole = PushNotice(about="m", tag="m", title="t", body="🟡" * 4_000).content()
    assert MAX_PLAIN_BYTES - 16 <= len(whole) <= MAX_PLAIN_BYTES
    assert "\ufffd" not in whole.decode()


@pytest.mark.parametrize(
    ("status", "title"),
    [("ok", "ann is done"), ("error", "ann failed"), (None, "ann wrote to you")],
)
def test_a_message_says_how_it_ended(status: Literal["ok", "error"] | None, title: str) -> None:
    key = "session:ann/turn:3"
    message = Message(id=key, sender="agent:ann", body="b", text="b", timestamp=NOON, status=status)
    notice = message_notice(message)
    assert (notice.title, notice.go) == (title, "#/inbox")
    assert "ann" not in notice.hidden().content().decode()
