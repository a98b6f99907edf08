"""The page through a reverse proxy that speaks TLS, under a name of its own."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.harness import DaemonProcess
from tests.fakes.tls_proxy import tls_proxy
from tests.web.browser import address, chromium, needs_chromium, open_window

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

NAME = "desk.example"


def test_a_page_that_was_reached_by_tls_is_a_secure_context_and_stays_logged_in(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start("--port", "0", "--name", NAME)
    inner = urlsplit(own_daemon.endpoint.url).port
    assert inner is not None
    # Not ignore_https_errors: the certificate of a service worker is checked all the same.
    flags = f"--host-resolver-rules=MAP {NAME} 127.0.0.1", "--ignore-certificate-errors"
    with tls_proxy(tmp_path, NAME, inner) as port, chromium(*flags) as browser:
        url = f"https://{NAME}:{port}/#{address(own_daemon).partition('#')[2]}"
        window = open_window(browser, url)
        window.wait_live()
        assert window.page.evaluate("isSecureContext")
        [cookie] = window.context.cookies()
        assert cookie["secure"]
        assert cookie["httpOnly"]
        window.page.reload()
        window.wait_live()
        window.check()
