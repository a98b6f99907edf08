"""A model, effort or thinking that Claude Code would take without a word is refused by its list."""

from __future__ import annotations

import pytest

from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.drivers.claude.models import read_models
from aegis.agents.drivers.harness import AgentFailed, AgentReady, Emit, OrderRefused, Write
from aegis.protocol.agent_events import ModelsOffered
from tests.aegis.agents.drivers.claude.wire import begins, initialized

LEVELS = ["low", "high"]
MODELS = [
    {"value": "default", "resolvedModel": "claude-opus-5-5", "supportedEffortLevels": LEVELS},
    {"value": "sonnet", "resolvedModel": "claude-sonnet-5-5", "supportedEffortLevels": ["max"]},
    {"value": "haiku", "resolvedModel": "claude-haiku-4-5"},
]


def started(model: str | None = None, effort: str | None = None) -> tuple[Claude, object]:
    machine = Claude(begins(model=model, effort=effort))
    # The program lists the model that it was given.
    custom = {"value": model, "resolvedModel": model, "supportedEffortLevels": ["max"]}
    response = {"mcp_servers_applied": True, "models": [*MODELS, custom]}
    return machine, initialized(machine, response=response)[0]


@pytest.mark.parametrize(
    ("model", "effort"),
    [
        (None, None),
        (None, "low"),
        ("sonnet", "max"),
        ("claude-sonnet-5-5", "max"),
        ("claude-other-1", "max"),  # a full name, whose efforts are not known
        ("glm-4.6", None),
        ("sonnet[1m]", None),
        ("opusplan", "low"),
    ],
)
def test_a_model_and_an_effort_that_it_may_have_are_taken(
    model: str | None, effort: str | None
) -> None:
    assert isinstance(started(model, effort)[1], AgentReady)


@pytest.mark.parametrize(
    ("model", "effort", "sentence"),
    [
        (
            "nonsense",
            None,
            "Claude Code has no model 'nonsense' (it offers 'default', 'sonnet', 'haiku', and full "
            "names): set another model in the profile, or none",
        ),
        (
            None,
            "silly",
            "Claude Code has no effort 'silly' for the model 'default' (it offers 'low', 'high'): "
            "set another effort in the profile, or none",
        ),
        (
            "haiku",
            "low",
            "Claude Code has no effort 'low' for the model 'haiku' (it offers none): set another "
            "effort in the profile, or none",
        ),
    ],
)
def test_others_fail_the_start_with_its_list(
    model: str | None, effort: str | None, sentence: str
) -> None:
    assert started(model, effort)[1] == AgentFailed(reason=sentence)


def test_a_change_is_checked_against_the_list_too() -> None:
    machine, _ = started()
    [refused] = machine.set_model("nonsense")
    assert isinstance(refused, OrderRefused)
    for model, subtype in (("sonnet", "success"), ("haiku", "error")):
        [order] = machine.set_model(model)
        assert isinstance(order, Write)
        reply = {"subtype": subtype, "request_id": order.frame["request_id"]}
        machine.receive({"type": "control_response", "response": reply})
        assert machine.refuse_effort("max") is None
        assert "for the model 'sonnet' (it offers 'max')" in (machine.refuse_effort("low") or "")


def test_its_models_are_an_event() -> None:
    machine = Claude(begins())
    found = initialized(machine, response={"mcp_servers_applied": True, "models": MODELS})
    [offered] = [each.event for each in found if isinstance(each, Emit)]
    assert isinstance(offered, ModelsOffered)
    assert [(each.name, each.efforts) for each in offered.models] == [
        ("default", LEVELS),
        ("sonnet", ["max"]),
        ("haiku", []),
    ]


def test_a_version_that_lists_no_models_takes_all() -> None:
    assert read_models({"models": "none"}) == read_models({"models": [5, {}]}) == ()
    machine = Claude(begins(model="nonsense", effort="silly"))
    [ready] = initialized(machine)
    assert isinstance(ready, AgentReady)


THINKING = [
    {"value": "default", "resolvedModel": "claude-opus-5-5", "supportsAdaptiveThinking": True},
    {"value": "haiku", "resolvedModel": "claude-haiku-4-5"},
]


def thinks(model: str | None, thinking: str) -> list[object]:
    machine = Claude(begins(model=model, thinking=thinking))
    response = {"mcp_servers_applied": True, "models": THINKING}
    return [*initialized(machine, response=response)]


@pytest.mark.parametrize(("thinking", "tokens"), [("on", None), ("off", 0), ("4000", 4000)])
def test_thinking_is_set_at_the_start(thinking: str, tokens: int | None) -> None:
    first = thinks("haiku", thinking)[0]
    assert isinstance(first, Write)
    assert first.frame["request"] == {
        "subtype": "set_max_thinking_tokens",
        "max_thinking_tokens": tokens,
    }


@pytest.mark.parametrize("thinking", ["off", "4000"])
def test_thinking_without_an_effect_is_refused(thinking: str) -> None:
    [failed] = thinks(None, thinking)
    assert isinstance(failed, AgentFailed)
    assert "'default' of Claude Code decides itself how long it thinks" in failed.reason
    assert isinstance(thinks(None, "on")[1], AgentReady)


def test_an_effort_and_thinking_are_checked_with_the_model_of_the_same_change() -> None:
    machine, _ = started("default", "high")
    assert machine.refuse_effort("high", "default") is None
    assert "'sonnet' (it offers 'max')" in (machine.refuse_effort("high", "sonnet") or "")
    assert machine.refuse_effort("max", "sonnet") is None
    other = Claude(begins(model="haiku"))
    initialized(other, response={"mcp_servers_applied": True, "models": THINKING})
    assert other.refuse_thinking("off") is None
    assert "no effect" in (other.refuse_thinking("off", "default") or "")
