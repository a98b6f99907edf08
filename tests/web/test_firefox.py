"""The page in Firefox: everything is shown, and a person's work of a day is done in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.resources.waiting import until
from tests.web.browser import SETTLE, address
from tests.web.firefox import firefox, named, needs_firefox
from tests.web.studio import studio_at

pytestmark = [pytest.mark.real, pytest.mark.long, needs_firefox]

IS_LIVE = "Boolean(document.querySelector('#link.up'))"
TYPES = "globalThis.app?.current?.name === 'docs' && Boolean(app.current.stream?.channel)"
SCREEN = "app.current.term.buffer.active"
SHOWN = f"""(() => {{ const lines = [];
for (let i = 0; i < {SCREEN}.length; i++) lines.push({SCREEN}.getLine(i).translateToString(true));
return lines.includes('typed-42'); }})()"""


def test_a_day_of_a_person_in_firefox(tmp_path: Path) -> None:
    with studio_at(tmp_path) as studio, firefox() as page:
        places = studio.furnish()
        page.do("open", address(studio.daemon))
        page.wait(IS_LIVE)
        for place in places.values():
            page.go(place)
            page.do("shows", "main :is(h1, h2)")
        page.go("/a/ada")
        page.do("shows", "article::-p-text(I look at the failing test first)")
        page.do("evaluate", f"({SETTLE})()")  # what has moved takes no click
        page.click("Allow")
        until(lambda: len(studio.call("request_list")["requests"]) == 1, "it is answered")
        page.fill("Write to ada", "SAY seen **in Firefox**")
        page.do("press", "Enter")
        page.do("shows", "article strong::-p-text(in Firefox)")
        page.go("/t/docs")
        page.wait(TYPES)
        page.do("type", "echo typed-$((40+2))")
        page.do("press", "Enter")
        page.wait(SHOWN)
        page.do("chord", "Control", "Shift", "K")
        page.do("shows", named("Go to or do", "combobox"))
        page.do("type", "queues")
        page.do("press", "Enter")
        page.do("shows", named("Queues", "heading"))
        page.do("reload")
        page.wait(IS_LIVE)
        port = studio.daemon.endpoint.url.rpartition(":")[2].strip("/")
        studio.daemon.kill()
        studio.daemon.start("--port", port, "--trust")
        page.wait(IS_LIVE)
        page.go("/t/docs")
        page.wait(TYPES)
        page.check()
