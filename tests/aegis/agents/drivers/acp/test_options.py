"""The modes, models and options of five agents, and the changes that a session needs."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.acp.options import (
    ASKING_MODES,
    Impossible,
    ReportedSettings,
    SettingChange,
    WantedSettings,
    is_set,
    mode_step,
    model_step,
    next_step,
    read_settings,
)
from tests.aegis.agents.drivers.acp.wire import session

REPORTED = [
    # agent, mode, asking mode and how it is set, model, another model and how it is set
    ("claude", "auto", ("mode", "default"), "default", ("model", "opus")),
    ("codex", "agent", ("mode", "read-only"), "fake-model", ("model", "gpt-6-astra")),
    ("gemini", "default", None, "gemini-2.5-flash", ("", "gemini-2.5-pro")),
    ("kimi", "default", None, "fake", None),
]


def settings(agent: str) -> ReportedSettings:
    return read_settings(session(agent))


def wanted(**fields: Any) -> WantedSettings:
    return WantedSettings(**{"modes": ASKING_MODES, **fields})


@pytest.mark.parametrize(("agent", "mode", "asking", "model", "other"), REPORTED)
def test_an_agent_is_put_into_its_asking_mode(
    agent: str, mode: str, asking: tuple[str, str] | None, model: str, other: object
) -> None:
    assert settings(agent).mode == mode
    step = next_step(settings(agent), wanted())
    expected = asking and SettingChange(subject="mode", option=asking[0], value=asking[1])
    assert step == expected


@pytest.mark.parametrize(("agent", "mode", "asking", "model", "other"), REPORTED)
def test_a_model_is_set_by_an_option_or_the_older_method(
    agent: str, mode: str, asking: object, model: str, other: tuple[str, str] | None
) -> None:
    assert settings(agent).model == model
    assert settings(agent).sets_model()
    offered = {each.name: bool(each.efforts) for each in settings(agent).offered_models()}
    assert offered.get(model, False) is (settings(agent).option("thought_level") is not None)
    assert other is None or offered[other[1]] is False
    assert model_step(settings(agent), model) is None
    if other is not None:
        expected = SettingChange(subject="model", option=other[0], value=other[1])
        assert model_step(settings(agent), other[1]) == expected


def test_opencode_has_no_mode_that_asks() -> None:
    step = next_step(settings("opencode"), wanted())
    assert step == Impossible(
        "has no mode in which it asks before it acts (it offers 'build', 'plan'): set "
        "'permission: full' in the profile, or use another agent"
    )
    assert next_step(settings("opencode"), wanted(needs_mode=False)) is None


def test_a_mode_that_the_provider_names_first_is_preferred() -> None:
    step = mode_step(settings("codex"), wanted(modes=("workspace-write", "read-only")))
    assert step == SettingChange(subject="mode", option="mode", value="workspace-write")


def test_the_mode_is_set_before_the_model_and_the_effort() -> None:
    changed = wanted(model="Opus 5.5", effort="high", extra={"fast": True})
    now, values = settings("claude"), []
    while isinstance(step := next_step(now, changed), SettingChange):
        values.append((step.option, step.value))
        now = set_in(now, step)
    assert step is None
    assert values == [("mode", "default"), ("model", "opus"), ("effort", "high"), ("fast", True)]


def set_in(now: ReportedSettings, change: SettingChange) -> ReportedSettings:
    reported = session("claude")["configOptions"]
    for each in reported:
        known = next(one for one in now.options if one.id == each["id"])
        each["currentValue"] = change.value if each["id"] == change.option else known.value
    return now.with_options({"configOptions": reported})


@pytest.mark.parametrize(
    ("agent", "fields", "reason"),
    [
        ("claude", {"model": "o9"}, "has no model 'o9' (it offers 'default', 'opus'"),
        ("gemini", {"model": "o9"}, "has no model 'o9' (it offers 'auto'"),
        ("claude", {"effort": "huge"}, "has no effort 'huge' (it offers 'default', 'low'"),
        ("kimi", {"effort": "high"}, "has no effort 'high' (it offers none)"),
        ("claude", {"extra": {"x": True}}, "has no option 'x': remove it from the provider"),
    ],
)
def test_a_setting_that_is_not_offered_is_impossible(
    agent: str, fields: dict[str, Any], reason: str
) -> None:
    step = next_step(settings(agent), wanted(modes=("default", "auto", "agent"), **fields))
    if isinstance(step, SettingChange):  # the mode comes first
        step = next_step(set_in(settings(agent), step), wanted(modes=("default",), **fields))
    assert isinstance(step, Impossible)
    assert step.reason.startswith(reason)


@pytest.mark.parametrize(
    ("change", "frame"),
    [
        (
            SettingChange(subject="mode", option="mode", value="default"),
            ("session/set_config_option", {"configId": "mode", "value": "default"}),
        ),
        (
            SettingChange(subject="fast", option="fast", value=True),
            ("session/set_config_option", {"configId": "fast", "value": True, "type": "boolean"}),
        ),
        (
            SettingChange(subject="mode", option="", value="default"),
            ("session/set_mode", {"modeId": "default"}),
        ),
        (
            SettingChange(subject="model", option="", value="m"),
            ("session/set_model", {"modelId": "m"}),
        ),
    ],
)
def test_a_change_is_one_request(change: SettingChange, frame: tuple[str, dict[str, Any]]) -> None:
    method, params = frame
    assert change.request("ses") == (method, {"sessionId": "ses", **params})


def test_choices_in_groups_are_choices() -> None:
    groups = [{"group": "g", "name": "G", "options": [{"value": "ask", "name": "Ask"}]}]
    option = {"id": "m", "category": "mode", "currentValue": "auto", "options": groups}
    found = read_settings({"configOptions": [option]})
    assert next_step(found, wanted()) == SettingChange(subject="mode", option="m", value="ask")


def test_an_option_without_a_category_is_found_by_its_id() -> None:
    option = {"id": "mode", "currentValue": "auto", "options": [{"value": "ask", "name": ""}]}
    found = read_settings({"configOptions": [option]})
    assert next_step(found, wanted()) == SettingChange(subject="mode", option="mode", value="ask")


def test_true_is_not_set_by_a_text() -> None:
    option = {"id": "fast", "category": "x", "currentValue": "1"}
    found = read_settings({"configOptions": [option]})
    change = SettingChange(subject="fast", option="fast", value=True)
    assert next_step(found, WantedSettings(needs_mode=False, extra={"fast": True})) == change
    assert not is_set(found, change)


@pytest.mark.parametrize(
    "result",
    [
        {"configOptions": [None, 1, [], {"id": 1}, {"id": "m"}, {"id": "m", "currentValue": []}]},
        {"configOptions": {"id": "m"}, "modes": [], "models": "m"},
        {"modes": {"availableModes": [{"id": 1}, None, {}], "currentModeId": []}},
        {"models": {"availableModels": {}, "currentModelId": 3}},
    ],
)
def test_fields_of_a_wrong_type_are_not_read(result: dict[str, Any]) -> None:
    assert read_settings(result) == ReportedSettings()


def test_the_number_and_length_of_options_are_limited() -> None:
    many = [{"id": f"o{i}", "currentValue": "x"} for i in range(1000)]
    assert len(read_settings({"configOptions": many}).options) == 64
    long = {"id": "x" * 501, "currentValue": "x"}
    assert read_settings({"configOptions": [long]}).options == ()
