"""The cookies of commands without a terminal."""

from __future__ import annotations

import pytest

from aegis.agents.drivers.cookie import DriverCookies, cookie_of_driver
from aegis.processes.process_table import CookiesOf
from aegis.workflows.cookie import WorkflowCookies, cookie_of_workflow
from aegis.workspaces.cookie import caller_of_cookie, cookie_of_execution

ROOT = "/home/me/project"


@pytest.mark.parametrize(("caller", "found"), [(None, ""), ("pm", "pm"), ("a.b-c", "a.b-c")])
def test_a_cookie_names_the_caller(caller: str | None, found: str) -> None:
    assert caller_of_cookie(cookie_of_execution(ROOT, "shop", caller, 3), ROOT) == found


def test_its_processes_are_found_with_those_of_terminals_and_with_no_other() -> None:
    own = cookie_of_execution(ROOT, "shop", "pm", 1)
    assert own in CookiesOf(root=ROOT)
    assert own not in CookiesOf(root=ROOT, name="shop")
    assert own not in DriverCookies(root=ROOT)
    assert own not in WorkflowCookies(ROOT)


@pytest.mark.parametrize(
    "cookie",
    [
        cookie_of_driver(ROOT, "a" * 32, 1),
        cookie_of_workflow(ROOT, "0" * 26, "pm", 1),
        cookie_of_execution("/home/me", "shop", "pm", 1),
        cookie_of_execution(f"{ROOT}/below", "shop", "pm", 1),
        f"{ROOT}/build/life.1",
        f"{ROOT}/@shop/1",
        f"{ROOT}/x@shop@pm/1",
        f"{ROOT}/@shop@pm@all/1",
        "",
    ],
)
def test_no_other_cookie_names_a_caller(cookie: str) -> None:
    assert caller_of_cookie(cookie, ROOT) is None
