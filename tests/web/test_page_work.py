"""The work that the page does for output, commands and a new connection: no more than is seen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, WebSocket

from tests.e2e.harness import DaemonProcess
from tests.web.browser import log_in, needs_chromium

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]


def test_a_connection_opens_each_stream_once(daemon: DaemonProcess, browser: Browser) -> None:
    window = log_in(browser, daemon)
    opened: list[str] = []

    def note(frame: str | bytes) -> None:
        said: dict[str, Any] = json.loads(frame) if isinstance(frame, str) else {}
        if said.get("type") == "open":
            opened.append(said["stream"])

    def listen(socket: WebSocket) -> None:
        opened.clear()
        socket.on("framesent", note)

    window.page.on("websocket", listen)
    window.page.reload()
    window.wait("() => globalThis.app?.store.loaded.value.has('requests')")
    assert len(opened) == len(set(opened)) >= 8
    window.page.evaluate("app.store.loaded.value = new Set(); app.link.socket.close(); 0")
    window.wait("app.link.state === 'up' && app.store.loaded.value.has('requests')")
    assert len(opened) == len(set(opened)) >= 8
    window.check()
