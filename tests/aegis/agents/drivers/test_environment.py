"""The environment and the cookie of an agent."""

from __future__ import annotations

from aegis.agents.drivers.cookie import DriverCookies, cookie_of_driver
from aegis.processes.environment import process_environment
from aegis.processes.guarded import guard
from aegis.processes.process_table import COOKIE_VARIABLE, CookiesOf


def test_the_variables_of_the_daemon_are_removed() -> None:
    inherited = {
        "HOME": "/home/u",
        "PATH": "/bin",
        "PWD": "/old",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "AEGIS_ROOT": "/r",
        "AEGIS_TERMINAL": "/r/build/1",
    }
    assert process_environment(inherited, {"PATH": "/mine"}, cwd="/w", cookie="c") == {
        "HOME": "/home/u",
        "PATH": "/mine",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "PWD": "/w",
        "AEGIS_TERMINAL": "c",
    }


def test_the_guard_looks_for_the_variable_that_the_reaper_looks_for() -> None:
    assert COOKIE_VARIABLE.encode() == guard.COOKIE_VARIABLE


def test_the_cookies_of_a_root_hold_those_of_its_agents_and_no_others() -> None:
    mine = cookie_of_driver("/r", "s1", 3)
    assert mine in DriverCookies(root="/r")
    assert mine in DriverCookies(root="/r", session="s1")
    assert mine not in DriverCookies(root="/r", session="s2")
    assert mine not in DriverCookies(root="/")
    assert cookie_of_driver("/", "s1", 3) in DriverCookies(root="/")
    # A terminal of the root, or of a root below it, is not an agent, and the other way round.
    for other in ("/r/s1/3", "/r/x/s1/3", "", None, "/r"):
        assert other not in DriverCookies(root="/r")
    assert mine not in CookiesOf(root="/r")
