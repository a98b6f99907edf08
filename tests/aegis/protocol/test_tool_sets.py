from __future__ import annotations

import pytest

from aegis.protocol.table import BY_NAME, COMMANDS
from aegis.protocol.tool_sets import BY_DRIVER, CORE, OPEN_TO_HANDLES, Offer, refuse_choice


def test_core_has_commands_that_exist_and_that_handles_may_call() -> None:
    assert set(CORE) <= {entry.name for entry in OPEN_TO_HANDLES}
    assert len(set(CORE)) == len(CORE)


@pytest.mark.parametrize(
    ("chosen", "commands"),
    [
        (("core",), set(CORE)),
        (("all",), set(BY_NAME)),
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
    assert offer.commands | offer.missing == set(BY_NAME)
    assert not offer.commands & offer.missing
    for entry in COMMANDS:
        assert (offer.refuse(entry) is None) == (entry.name in offer.commands)


def test_a_refusal_says_which_set_has_the_tool_and_where_it_is_chosen() -> None:
    assert Offer(("core",)).refuse(BY_NAME["spawn"]) == (
        "aegis_spawn: not offered at this address, whose tools are core: the set 'all' has it; a "
        "person chooses it with `aegis-actors session new --handle HANDLE --tools SETS`"
    )
    assert Offer(("term_read",), is_driven=True).refuse(BY_NAME["term_run"]) == (
        "aegis_term_run: not offered at this address, whose tools are term_read: the set 'core' or "
        "'all' has it; a person chooses it with `tools` in the agent's profile in .aegis.yaml"
    )


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (["core", "all", "term_run", "aegis_term_run", "shell_open"], None),
        (["term_runn"], "'term_runn' is no tool and no set of tools; did you mean 'term_run'?"),
        (["zzz"], "'zzz' is no tool and no set of tools; choose core, all, or names of tools"),
        # The operator's commands cannot be chosen for a handle.
        (
            ["core", "down"],
            "'down' is no tool and no set of tools; choose core, all, or names of tools",
        ),
    ],
)
def test_a_choice_of_unknown_tools_is_refused(chosen: list[str], sentence: str | None) -> None:
    assert refuse_choice(chosen) == sentence
