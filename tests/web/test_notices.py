"""Notices of the page while it is hidden or closed, its worker, and its installation."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, expect

from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until
from tests.web.browser import PHONE, Window, address, log_in, needs_chromium
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

SHOWN = """navigator.serviceWorker.ready.then(worker => worker.getNotifications())
.then(all => all.map(each => [each.title, each.body]))"""
HIDE = """() => {
  Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""
SHOW = """() => {
  delete document.visibilityState;
  document.dispatchEvent(new Event('visibilitychange'));
}"""
LOOKED_AT = """navigator.locks.query()
.then(({ held }) => held.filter(({ name }) => name.startsWith('looked-at ')).length)"""
# A push service is a server of the browser's maker: a browser without one answers like this.
PUSH = """
const bytes = length => Uint8Array.from({ length }, (_, at) => at % 251);
const made = key => ({
  endpoint: 'https://push.example.net/send/1', options: { applicationServerKey: key },
  getKey: name => Uint8Array.from(name === 'auth' ? bytes(16) : [4, ...POINT]).buffer,
  async unsubscribe() { sessionStorage.removeItem('own'); },
});
Object.assign(PushManager.prototype, {
  async getSubscription() {
    const key = JSON.parse(sessionStorage.getItem('own'));
    return key && made(Uint8Array.from(key).buffer);
  },
  async subscribe({ userVisibleOnly, applicationServerKey: key }) {
    if (!userVisibleOnly) throw new Error('not visible');
    sessionStorage.setItem('own', JSON.stringify([...key]));
    return made(key.buffer);
  },
});
"""
# The base point of P-256: any point of the curve is a key.
POINT = bytes.fromhex(
    "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)


def allow(window: Window) -> None:
    window.context.grant_permissions(["notifications"], origin=window.origin)
    window.wait("Notification.permission === 'granted'")


def wait_shown(window: Window, *wanted: list[str]) -> None:
    window.wait_until(lambda: window.page.evaluate(SHOWN) == [*wanted], f"shown: {wanted}")


def wait_looked_at(window: Window, pages: int) -> None:
    window.wait_until(lambda: window.page.evaluate(LOOKED_AT) == pages, f"{pages} looked at")


def test_the_page_can_be_installed(daemon: DaemonProcess, browser: Browser) -> None:
    window = log_in(browser, daemon, PHONE)
    window.page.evaluate("navigator.serviceWorker.ready.then(worker => worker.scope)")
    session = window.context.new_cdp_session(window.page)
    manifest: dict[str, Any] = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    found = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [each["errorId"] for each in found] == ["in-incognito"]  # as is each test's profile
    window.check()


def test_a_request_notifies_and_is_withdrawn_when_it_is_answered(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon, PHONE)
    allow(window)
    window.page.evaluate(HIDE)
    studio.spawn("ASK touch x", handle="ada")
    wait_shown(window, ["ada waits for you", "run touch x"])
    window.wait("document.title.startsWith('(1) ')")
    [request] = studio.call("request_list")["requests"]
    studio.daemon.cli("request", "answer", request["id"], "deny")
    wait_shown(window)
    window.check()


def test_a_message_notifies_only_where_that_is_chosen_and_hides_its_contents(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    allow(window)
    page = window.page
    window.go("/settings")
    notices = page.get_by_role("group", name="Notifications", exact=True)
    chosen = notices.get_by_role("radio", name="And what ended")
    chosen.click()
    expect(chosen).to_be_checked()  # the browser is asked first
    page.evaluate(HIDE)
    studio.send("human", "the \u202ecart\nis \x1b[31mdone", sender="ada")
    wait_shown(window, ["ada wrote to you", "the ⟨U+202E⟩cart is done"])
    # Read with another client, it is withdrawn once the page is shown.
    message = studio.call("inbox_read", unread=False)["messages"][-1]
    studio.daemon.cli("inbox", "read", "--after", message["id"])
    page.evaluate(SHOW)
    wait_shown(window)
    page.evaluate(HIDE)
    notices.get_by_label("Hide the contents").check()
    studio.send("human", "the cart is done", sender="ada")
    wait_shown(window, ["Something waits for you", ""])
    window.check()


def test_nobody_is_notified_who_looks_or_has_not_allowed_it(
    studio: Studio, browser: Browser
) -> None:
    looks, forbids = log_in(browser, studio.daemon), log_in(browser, studio.daemon)
    allow(looks)
    forbids.page.evaluate(HIDE)
    studio.spawn("ASK touch y", handle="bob")
    for window in (looks, forbids):
        window.wait("document.title.startsWith('(1) ')")
        window.page.wait_for_timeout(300)
        assert window.page.evaluate(SHOWN) == []
        window.check()


def test_a_change_in_the_last_frame_before_the_page_is_hidden_notifies(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    allow(window)
    window.wait("app.store.loaded.value.has('requests')")
    window.page.evaluate(
        """() => {
        globalThis.requestAnimationFrame = () => 0;
        const { link } = app, take = link.take.bind(link);
        link.take = (frame, cost) => {
          take(frame, cost);
          if (frame.item?.request?.handle === 'cleo') globalThis.hasCome = true;
        };
        }"""
    )
    studio.spawn("ASK touch z", handle="cleo")
    window.wait("globalThis.hasCome")
    window.page.evaluate(HIDE)
    wanted = ["cleo waits for you", "run touch z"]
    window.wait_until(lambda: wanted in window.page.evaluate(SHOWN), "a notification")
    window.check()


COUNT = """() => {
  const { query } = LockManager.prototype;
  window.asked = 0;
  LockManager.prototype.query = async function () {
    const found = await query.call(this);
    window.asked += 1;
    return found;
  };
}"""


def test_a_hidden_tab_is_silent_while_another_one_of_the_operator_is_looked_at(
    studio: Studio, browser: Browser
) -> None:
    hidden = log_in(browser, studio.daemon)
    allow(hidden)
    wait_looked_at(hidden, 1)
    hidden.page.evaluate(HIDE)
    wait_looked_at(hidden, 0)

    def titles() -> list[str]:
        return [title for title, _ in hidden.page.evaluate(SHOWN)]

    # A read-only link shows no requests.
    studio.call("term_spawn", name="seen")
    linked = Window(hidden.context.new_page(), hidden.context, hidden.origin)
    linked.page.goto(studio.call("page_link", view="terminal:seen")["url"])
    linked.wait_terminal()
    studio.spawn("ASK touch u", handle="fred")
    hidden.wait_until(lambda: "fred waits for you" in titles(), "no other tab shows it")
    other = Window(hidden.context.new_page(), hidden.context, hidden.origin)
    other.page.goto(hidden.origin)
    wait_looked_at(hidden, 1)
    hidden.page.evaluate(COUNT)
    studio.spawn("ASK touch v", handle="dora")
    is_known = "[...app.store.requests.value.values()].some(each => each.handle === 'dora')"
    for window in (hidden, other):
        window.wait(f"globalThis.app && {is_known}")
    hidden.wait("window.asked > 0")
    other.page.evaluate("app.link.hold()")  # as a page that is left: it can be kept then
    wait_looked_at(hidden, 0)
    other.page.close()
    studio.spawn("ASK touch w", handle="elsa")
    hidden.wait_until(lambda: "elsa waits for you" in titles(), "a notification")
    assert "dora waits for you" not in titles()  # of which it was decided before
    hidden.check()


def subscriptions(studio: Studio) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = studio.call("push_list")["subscriptions"]
    return found


def is_of(studio: Studio, page: str) -> bool:
    found: bool = [each["page"] for each in subscriptions(studio)] == [page]
    return found


def test_a_browser_subscribes_chooses_and_unsubscribes(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon, PHONE)
    allow(window)
    window.page.add_init_script(PUSH.replace("POINT", str(list(POINT))))
    window.page.reload()
    window.go("/settings")
    setting = window.page.get_by_role("group", name="Notifications when the page is closed")
    on, off = (setting.get_by_role("radio", name=name, exact=True) for name in ("On", "Off"))
    expect(off).to_be_checked()
    on.click()
    expect(on).to_be_checked()
    [kept] = subscriptions(studio)
    assert kept["service"] == "push.example.net"
    assert (kept["requests"], kept["ends"], kept["hides"]) == (True, False, False)
    setting.get_by_label("Messages to me").check()
    setting.get_by_label("Hide the contents").check()
    until(lambda: subscriptions(studio)[0]["hides"], "the choice is the daemon's")
    assert [each["ends"] for each in subscriptions(studio)] == [True]
    window.page.reload()
    expect(on).to_be_checked()
    expect(setting.get_by_label("Hide the contents")).to_be_checked()
    # A new login is that of before, or takes its subscription over if the key was lost.
    for forget in ("0", "localStorage.removeItem('page-key')"):
        window.page.evaluate(forget)
        page_id = window.page.evaluate("app.link.me.page")
        window.page.goto(address(studio.daemon))
        window.wait("app.link?.state === 'up' && !location.hash.includes('code')")
        window.go("/settings")
        expect(on).to_be_checked()
        expect(setting.get_by_label("Hide the contents")).to_be_checked()
        own = window.page.evaluate("app.link.me.page")
        assert (own == page_id) == (forget == "0")
        until(partial(is_of, studio, own), "it is of this login")
    studio.call("page_revoke", id=page_id)
    assert [each["hides"] for each in subscriptions(studio)] == [True]
    off.click()
    expect(off).to_be_checked()
    assert subscriptions(studio) == []
    window.check()


def test_a_refused_subscription_says_why(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    allow(window)
    script = PUSH.replace("POINT", str(list(POINT))).replace("https://push.example.net", "http://x")
    window.page.add_init_script(script)
    window.page.reload()
    window.go("/settings")
    setting = window.page.get_by_role("group", name="Notifications when the page is closed")
    setting.get_by_role("radio", name="On").click()
    expect(setting.get_by_role("alert")).to_contain_text("https")
    assert all(each["service"] == "push.example.net" for each in subscriptions(studio))
    window.check()


class Pushes:
    """Delivers messages to the worker of a page, as the browser does for a push service."""

    def __init__(self, window: Window) -> None:
        window.page.evaluate("navigator.serviceWorker.ready.then(() => null)")
        self.window = window
        window.wait_until(lambda: bool(window.context.service_workers), "the worker is attached")
        [self.worker] = window.context.service_workers
        self._found: list[str] = []
        self._session: CDPSession = window.context.new_cdp_session(window.page)
        self._session.on("ServiceWorker.workerRegistrationUpdated", self._note)
        self._session.send("ServiceWorker.enable")
        window.wait_until(lambda: bool(self._found), "the worker is registered")

    def _note(self, event: dict[str, Any]) -> None:
        self._found += [each["registrationId"] for each in event["registrations"]]

    def send(self, document: object) -> None:
        data = document if isinstance(document, str) else json.dumps(document)
        origin, [id_, *_] = self.window.origin, self._found
        arguments = {"origin": origin, "registrationId": id_, "data": data}
        self._session.send("ServiceWorker.deliverPushMessage", arguments)

    def shown(self) -> list[list[str]]:
        found: list[list[str]] = self.worker.evaluate(
            """() => registration.getNotifications()
            .then(all => all.map(each => [each.title, each.body, each.data.go]))"""
        )
        return found

    def wait(self, *wanted: list[str]) -> None:
        self.window.wait_until(lambda: self.shown() == list(wanted), f"shown: {wanted}")


PAGES = "clients.matchAll({ includeUncontrolled: true }).then(all => all.length)"
NOTICE = {"v": 1, "tag": "r1", "title": "ann waits for you", "body": "make", "settled": False}


def test_the_worker_shows_replaces_and_closes_what_is_pushed(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    allow(window)
    pushes = Pushes(window)
    window.page.goto("about:blank")  # the page is closed
    window.wait_until(lambda: pushes.worker.evaluate(PAGES) == 0, "the worker has no page")
    pushes.send({**NOTICE, "go": "#/a/ann"})
    pushes.wait(["ann waits for you", "make", "#/a/ann"])
    pushes.send({**NOTICE, "title": "ann still waits", "go": "https://example.net/"})
    pushes.wait(["ann still waits", "make", "#/home"])
    pushes.send("no JSON")
    pushes.send({"tag": 1})
    pushes.send({**NOTICE, "title": "Answered", "settled": True})
    pushes.wait()


def test_the_worker_is_silent_while_a_page_of_the_operator_is_looked_at(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    allow(window)
    pushes = Pushes(window)
    wait_looked_at(window, 1)
    pushes.send(NOTICE)
    window.page.wait_for_timeout(300)
    assert pushes.shown() == []
    studio.call("term_spawn", name="linked")
    window.page.goto(studio.call("page_link", view="terminal:linked")["url"])
    window.wait_terminal()
    wait_looked_at(window, 0)  # the page of before is gone
    pushes.send(NOTICE)  # which a read-only link does not show
    pushes.wait(["ann waits for you", "make", "#/home"])
    window.check()


CLICK = """go => {
  const notification = { close() {}, data: { go } };
  const event = new ExtendableEvent('notificationclick');
  dispatchEvent(Object.assign(event, { notification }));
}"""


def test_a_click_on_a_notification_shows_its_place(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    pushes = Pushes(window)
    pushes.worker.evaluate(CLICK, "#/settings")
    window.wait("location.hash === '#/settings'")
    pushes.worker.evaluate(CLICK, "https://example.net/")
    window.wait("location.hash === '#/home'")
    window.check()
