"""The options of a session, as an editor gets them."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.acp.choices import options_of
from aegis.protocol.agent_events import OfferedModel
from aegis.protocol.agents import AgentInfo, ProfileInfo

INFO = AgentInfo(
    id="s1",
    handle="pm",
    profile="claude",
    provider="claude",
    state="idle",
    since="",
    reason="",
    cwd="/w",
    spawned_by="human",
    model="",
    turn=0,
    waiting=0,
    quiet_s=0.0,
    tools=[],
    blocked=None,
    limited_until=None,
    conversation=None,
)

MODELS = [
    OfferedModel(name="default", full_name="claude-opus-5-5", efforts=["low", "high"]),
    OfferedModel(name="opus", full_name="claude-opus-5-5", efforts=["low", "high"]),
    OfferedModel(name="haiku", title="Haiku", full_name="claude-haiku-4-5", sets_thinking=True),
]

PROFILES = [
    ProfileInfo(profile=name, provider=provider, permission="ask", model=model)
    for name, provider, model in (
        ("a", "claude", "sonnet"),
        ("b", "gemini", "flash"),
        ("c", "claude", ""),
    )
]


def shown(models: list[OfferedModel], **changed: Any) -> dict[str, tuple[str, list[str]]]:
    """The options besides the permission: their values, and the values that can be chosen."""
    options = options_of(attrs.evolve(INFO, **changed), models, PROFILES)
    return {
        each["id"]: (each["currentValue"], [one["value"] for one in each["options"]])
        for each in options
        if each["id"] != "mode"
    }


def test_the_models_are_those_that_the_agent_lists() -> None:
    names = ["default", "opus", "haiku"]
    efforts = ("default", ["default", "low", "high"])
    assert shown(MODELS) == {"model": ("default", names), "effort": efforts}
    assert shown(MODELS, model="opus") == {"model": ("opus", names), "effort": efforts}
    found = shown(MODELS, model="claude-opus-5-5", effort="high")
    assert found == {"model": ("default", names), "effort": ("high", ["low", "high"])}
    other = shown(MODELS, model="claude-other")
    assert other == {"model": ("claude-other", ["claude-other", *names])}


def test_thinking_is_an_option_where_it_can_be_set_or_is() -> None:
    ways = ["on", "off"]
    assert shown(MODELS, model="claude-haiku-4-5")["thinking"] == ("on", ways)
    assert shown(MODELS, model="haiku", thinking="off")["thinking"] == ("off", ways)
    assert shown(MODELS, model="haiku", thinking="4000")["thinking"] == ("4000", [*ways, "4000"])
    assert shown([], thinking="off") == {"thinking": ("off", ways)}


def test_without_a_list_of_the_agent_the_models_of_its_profiles_are_offered() -> None:
    assert shown([], model="opus") == {"model": ("opus", ["opus", "sonnet"])}
    assert shown([], model="sonnet") == {"model": ("sonnet", ["sonnet"])}
    assert shown([]) == {}
    assert shown([], effort="low") == {"effort": ("low", ["low"])}
