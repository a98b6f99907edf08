from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.table import BY_NAME, COMMANDS
from aegis.servers.call_limit import ADVICE, advice, longest_wait_s, within_limit

RUN = BY_NAME["term_run"]


@pytest.mark.parametrize(
    ("limit_s", "longest_s"), [(2, 1.5), (10, 9), (30, 27), (60, 55), (86_400, 86_395)]
)
def test_a_part_of_the_limit_is_left_for_the_way_back(limit_s: float, longest_s: float) -> None:
    assert longest_wait_s(limit_s) == longest_s


@pytest.mark.parametrize(
    ("command", "arguments", "limit_s", "expected"),
    [
        ("term_run", {"timeout": 300}, None, {"timeout": 300}),
        ("term_run", {"timeout": 300}, 60, {"timeout": 55}),
        ("term_run", {"timeout": 20}, 60, {"timeout": 20}),
        ("term_run", {}, 10, {"timeout": 9}),  # its own default is longer
        ("inbox_wait", {}, 60, {}),
        ("term_output", {}, 2, {}),  # it does not wait
        ("term_output", {"wait_s": 100}, 60, {"wait_s": 55}),
        ("workspace_exec", {"timeout": 100}, 60, {"timeout": 55}),
        ("term_list", {}, 2, {}),
        # Refused with their own sentences.
        ("term_run", {"timeout": "long"}, 60, {"timeout": "long"}),
        ("term_run", {"timeout": 1e9}, 60, {"timeout": 1e9}),
        ("term_run", {"timeout": None}, 60, {"timeout": None}),
    ],
)
def test_a_wait_is_shorter_than_the_limit_of_the_call(
    command: str, arguments: dict[str, object], limit_s: float | None, expected: object
) -> None:
    assert within_limit(BY_NAME[command], arguments, limit_s) == expected


@given(
    st.sampled_from(COMMANDS),
    st.floats(2, MAX_TIMEOUT_S),
    st.floats(0, MAX_TIMEOUT_S) | st.none(),
)
def test_no_wait_exceeds_the_limit_and_none_grows(
    entry: Any, limit_s: float, wanted: float | None
) -> None:
    fields = attrs.fields_dict(entry.command)
    names = [name for name in ("timeout", "wait_s") if name in fields]
    asked: dict[str, Any] = {} if wanted is None else dict.fromkeys(names, wanted)
    shorter = within_limit(entry, asked, limit_s)
    for name in names:
        before: Any = asked.get(name, fields[name].default)
        after = shorter.get(name, fields[name].default)
        assert isinstance(after, int | float)
        assert after <= before
        assert after < limit_s


def test_every_command_that_waits_for_a_timeout_has_a_next_call() -> None:
    waiting = {each.name for each in COMMANDS if "timeout" in attrs.fields_dict(each.command)}
    assert set(ADVICE) == waiting | {"ask_human"}


@pytest.mark.parametrize(
    ("command", "reply", "is_advised"),
    [
        ("term_run", {"timed_out": True}, True),
        ("term_run", {"timed_out": False}, False),
        ("term_wait", {"reason": "timeout"}, True),
        ("term_wait", {"reason": "ended"}, False),
        ("inbox_wait", {"messages": []}, True),
        ("inbox_wait", {"messages": [{}]}, False),
        ("inbox_read", {"messages": []}, False),
        ("ask_human", {"request_id": "x", "state": "open", "answer": None}, True),
        ("ask_human", {"request_id": "x", "state": "answered", "answer": "Blue"}, False),
        ("workspace_exec", {"timed_out": True}, True),
        ("delegate", {"task_id": "0" * 26, "ended": None}, True),
        ("group_wait_all", {"broadcast_id": "0" * 26, "metadata": {"timed_out": True}}, True),
        ("group_wait_any", {"broadcast_id": "0" * 26, "metadata": {"timed_out": False}}, False),
        ("delegate", {"task_id": "0" * 26, "ended": "2026-05-22T14:00:00Z"}, False),
        ("term_list", {"result": []}, False),
        ("term_broadcast", {"result": [{"record": None}, {"record": {"timed_out": True}}]}, True),
        ("term_broadcast", {"result": [{"record": {"timed_out": False}}]}, False),
    ],
)
def test_a_reply_after_the_time_says_what_to_call_next(
    command: str, reply: dict[str, Any], is_advised: bool
) -> None:
    found = advice(BY_NAME[command], reply, 60)
    assert (found is not None) == is_advised
    assert advice(BY_NAME[command], reply, None) is None
    if found is not None:
        assert found.startswith("Calls of yours return within 55 s, before they are cut: ")
