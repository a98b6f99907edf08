from __future__ import annotations

import pytest

from aegis.errors import InvalidRequest
from aegis.protocol.table import BY_NAME, TOOLS
from aegis.protocol.tool_sets import (
    BY_DRIVER,
    CORE,
    OPEN_TO_HANDLES,
    WORK,
    Offer,
    called,
    refuse_choice,
)

ALL = {entry.name for entry in TOOLS}


def test_core_has_commands_that_exist_and_that_handles_may_call() -> None:
    assert set(CORE) <= {entry.name for entry in OPEN_TO_HANDLES}
    assert len(set(CORE)) == len(CORE)


@pytest.mark.parametrize(
    ("chosen", "commands"),
    [
        (("core",), set(CORE)),
        (("work",), set(WORK)),
        (("all",), ALL),
        (("core", "aegis_call"), {*CORE, "call"}),
        (("core", "spawn"), {*CORE, "spawn"}),
        (
            ("term_run", "aegis_term_read", "workspace_exec"),
            {"term_run", "term_read", "workspace_exec"},
        ),
        ((), set()),
        (("a_tool_of_a_later_version", "term_run"), {"term_run"}),
    ],
)
def test_an_address_offers_the_sets_and_tools_that_were_chosen(
    chosen: tuple[str, ...], commands: set[str]
) -> None:
    assert Offer(chosen).commands == commands
    assert Offer(chosen, is_driven=True).commands == commands - BY_DRIVER


def test_no_choice_offers_a_driven_session_the_inbox_that_its_driver_reads() -> None:
    for chosen in ("core", "all", "inbox_read", "aegis_inbox_wait"):
        offer = Offer((chosen,), is_driven=True)
        assert not offer.commands & BY_DRIVER
        assert not offer.missing & BY_DRIVER
        assert offer.refuse(BY_NAME["inbox_wait"]) == (
            "aegis_inbox_wait: not offered here: messages arrive as turns of your conversation"
        )


def test_a_command_is_either_offered_or_missing() -> None:
    offer = Offer(("core",))
    assert offer.commands | offer.missing == ALL
    assert not offer.commands & offer.missing
    for entry in TOOLS:
        assert (offer.refuse(entry) is None) == (entry.name in offer.commands)


def test_the_default_is_a_working_set_that_reaches_every_other_tool() -> None:
    assert Offer() == Offer(("work",))
    assert len(WORK) == len(set(WORK)) <= 24
    assert set(CORE) < set(WORK)
    assert all(Offer().refuse(entry) is None for entry in TOOLS)
    driven = Offer(is_driven=True)
    refused = {entry.name for entry in TOOLS if driven.refuse(entry) is not None}
    assert refused == BY_DRIVER


@pytest.mark.parametrize(
    ("sent", "inner"),
    [
        (
            {"tool": "aegis_rename", "arguments": {"new_handle": "b"}},
            ("aegis_rename", {"new_handle": "b"}),
        ),
        ({"tool": "rename", "arguments": '{"a": "1"}'}, ("aegis_rename", {"a": "1"})),
        ({"tool": "shell_open"}, ("shell_open", {})),
        ({"tool": "no_such", "arguments": None}, ("no_such", {})),
        (
            {"tool": "aegis_tree", "from_handle": "pm", "arguments": {}},
            ("aegis_tree", {"from_handle": "pm"}),
        ),
    ],
)
def test_a_call_names_its_inner_tool_and_arguments(
    sent: dict[str, object], inner: tuple[str, dict[str, object]]
) -> None:
    assert called(sent) == inner


@pytest.mark.parametrize(
    "sent", [{}, {"tool": 5}, {"tool": "aegis_call"}, {"tool": "call"}, {"tool": "a", "b": 1}]
)
def test_a_call_of_nothing_is_refused(sent: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="aegis_call: "):
        called(sent)


def test_a_refusal_says_which_set_has_the_tool_and_where_it_is_chosen() -> None:
    assert Offer(("core",)).refuse(BY_NAME["spawn"]) == (
        "aegis_spawn: not offered at this address, whose tools are core: the set 'work' or 'all' "
        "has it; a person chooses it with `aegis-actors session new --handle HANDLE --tools SETS`"
    )
    assert Offer(("term_read",), is_driven=True).refuse(BY_NAME["term_run"]) == (
        "aegis_term_run: not offered at this address, whose tools are term_read: the set 'core' or "
        "'work' or 'all' has it; a person chooses it with `tools` in the agent's profile in "
        ".aegis.yaml"
    )


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (["core", "all", "term_run", "aegis_term_run", "shell_open"], None),
        (["term_runn"], "'term_runn' is no tool and no set of tools; did you mean 'term_run'?"),
        (
            ["zzz"],
            "'zzz' is no tool and no set of tools; choose core, work, all, or names of tools",
        ),
        # The operator's commands cannot be chosen for a handle.
        (
            ["core", "down"],
            "'down' is no tool and no set of tools; choose core, work, all, or names of tools",
        ),
    ],
)
def test_a_choice_of_unknown_tools_is_refused(chosen: list[str], sentence: str | None) -> None:
    assert refuse_choice(chosen) == sentence
