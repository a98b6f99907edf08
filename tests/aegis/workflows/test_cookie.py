"""The cookies of workflows' processes."""

from __future__ import annotations

import pytest

from aegis.agents.drivers.cookie import DriverCookies, cookie_of_driver
from aegis.processes.process_table import CookiesOf
from aegis.workflows.cookie import WorkflowCookies, cookie_of_workflow, starter_of_cookie

ROOT = "/home/me/project"


@pytest.mark.parametrize(("starter", "found"), [(None, ""), ("pm", "pm"), ("a.b-c", "a.b-c")])
def test_a_cookie_names_the_starter(starter: str | None, found: str) -> None:
    cookie = cookie_of_workflow(ROOT, "0" * 26, starter, 3)
    assert starter_of_cookie(cookie, ROOT) == found
    assert cookie in WorkflowCookies(ROOT)


def test_no_other_cookie_is_one_of_a_workflow_and_none_of_its_is_another() -> None:
    own = cookie_of_workflow(ROOT, "0" * 26, "pm", 1)
    assert own not in DriverCookies(root=ROOT)
    assert own not in CookiesOf(root=ROOT)
    others = [cookie_of_driver(ROOT, "a" * 32, 1), f"{ROOT}/build/1", f"{ROOT}/@w/1", "", "//w/"]
    assert [each for each in others if each in WorkflowCookies(ROOT)] == []
    assert own not in WorkflowCookies("/home/me")
