"""The modes, models and config options of an agent, and the changes to reach wanted ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from aegis.agents.drivers.acp.frames import items, mapping, name, string
from aegis.agents.drivers.commands import Mentions
from aegis.protocol.agent_events import OfferedModel

ASKING_MODES = ("default", "ask", "manual", "read-only", "workspace-write")
"""Modes in which agents ask before they act, the strictest first for one agent."""

HARMLESS_MODES = ("plan", "read-only")
"""Modes that an agent may choose itself: it can do less in them."""

MAX_OPTIONS = 64

MAX_OFFERED = 256
"""Models, and efforts, that are shown; others can be set too."""


@attrs.frozen(kw_only=True)
class AcpOptions:
    """The facts about one provider that the protocol does not report.

    ``asking_modes``: the modes in which it asks a person, the best first. ``needs_mode``: without
    such a mode it must not start, unless the permission is "full"; False where its own
    configuration makes it ask. ``auth``: the method of ``authenticate``, used only when the agent
    asks for a login. ``uses_only_login``: without one, an agent with a single method that needs no
    terminal is authenticated by that.

    ``session_options``: the ids of the options that allow for the session, the narrowest first;
    options of kind ``allow_always`` that are not named are not offered, because their effect
    outlives the session. None: all are offered.

    ``reports_cost``: its usage has a cost. ``waits_for_mcp``: it starts MCP servers beside its
    first turn, which is therefore held until ``mcp_connected``. ``extra``: values of config
    options, by their ids.

    ``meta``: the ``_meta`` of the calls that open a conversation. ``server_in_file``: our MCP
    server is passed in a file, not in these calls. ``cwd_end`` is appended to the working directory
    in them. ``reads_files``: it is offered to read files through its client.

    ``plan_mode``: the id of its mode for plans; ``""``: it has none that can be used.
    ``plan_option``: the id of the option that approves a plan and leads to the asking mode.
    ``edits_by_mode``: an option that allows edits for the session changes its mode, so none is
    offered. ``mode_mark``: the beginning of the message by which it reports its mode.
    ``mentions``: what it expands in a prompt.

    ``own_title``: a regular expression that fits the title of each call of a tool of ours, if the
    agent does not name tools; its group is the tool's name. No other call of the kind ``other`` may
    have such a title.
    """

    asking_modes: tuple[str, ...] = ASKING_MODES
    needs_mode: bool = True
    auth: str = ""
    uses_only_login: bool = False
    session_options: tuple[str, ...] | None = None
    reports_cost: bool = False
    waits_for_mcp: bool = False
    extra: Mapping[str, str | bool] = attrs.field(factory=dict)
    meta: Mapping[str, Any] = attrs.field(factory=dict)
    server_in_file: bool = False
    cwd_end: str = ""
    reads_files: bool = True
    own_title: str = ""
    plan_mode: str = ""
    plan_option: str = ""
    edits_by_mode: bool = False
    mode_mark: str = ""
    mentions: Mentions = ""


@attrs.frozen(kw_only=True)
class Option:
    """One config option; ``choices`` maps the values of a selection to their names."""

    id: str
    category: str
    value: str | bool
    choices: Mapping[str, str]


@attrs.frozen(kw_only=True)
class ReportedSettings:
    """The settings that an agent reports: config options, and the older modes and models."""

    options: tuple[Option, ...] = ()
    modes: tuple[str, ...] = ()
    old_mode: str = ""
    models: tuple[str, ...] = ()
    old_model: str = ""

    def option(self, category: str) -> Option | None:
        """Return the first option of a category."""
        return next((each for each in self.options if each.category == category), None)

    @property
    def mode(self) -> str:
        """The current mode; ``""``: not reported."""
        option = self.option("mode")
        return str(option.value) if option else self.old_mode

    @property
    def model(self) -> str:
        """The current model; ``""``: not reported."""
        option = self.option("model")
        return str(option.value) if option else self.old_model

    def offered_modes(self) -> tuple[str, ...]:
        """Return the names of all modes."""
        option = self.option("mode")
        return tuple(option.choices) if option else self.modes

    def sets_model(self) -> bool:
        """Whether the model can be set."""
        return self.option("model") is not None or bool(self.models)

    def offered_models(self) -> list[OfferedModel]:
        """Return the models that can be set, the current one with its efforts."""
        option, effort = self.option("model"), self.option("thought_level")
        choices = option.choices if option else dict.fromkeys(self.models, "")
        efforts = [*(effort.choices if effort else ())][:MAX_OFFERED]
        return [
            OfferedModel(name=each, title=title, efforts=efforts if each == self.model else [])
            for each, title in [*choices.items()][:MAX_OFFERED]
        ]

    def with_mode(self, mode: str) -> ReportedSettings:
        """Return the settings after the agent reported its mode."""
        return attrs.evolve(
            self,
            old_mode=mode,
            options=tuple(
                attrs.evolve(each, value=mode) if each.category == "mode" else each
                for each in self.options
            ),
        )

    def with_options(self, result: Mapping[str, Any]) -> ReportedSettings:
        """Return the settings after a message with all ``configOptions``."""
        if not isinstance(result.get("configOptions"), list):
            return self
        return attrs.evolve(self, options=tuple(_options(result["configOptions"])))


def read_settings(result: Mapping[str, Any]) -> ReportedSettings:
    """Return the settings in the result of session/new, load or resume."""
    modes, models = mapping(result.get("modes")), mapping(result.get("models"))
    return ReportedSettings(
        options=tuple(_options(result.get("configOptions"))),
        modes=_strings(modes.get("availableModes"), "id"),
        old_mode=name(modes.get("currentModeId")),
        models=_strings(models.get("availableModels"), "modelId"),
        old_model=name(models.get("currentModelId")),
    )


def _strings(entries: object, key: str) -> tuple[str, ...]:
    found = (name(mapping(each).get(key)) for each in items(entries))
    return tuple(filter(None, found))


def _options(options: object) -> Iterator[Option]:
    for each in map(mapping, items(options, MAX_OPTIONS)):
        id_, value = name(each.get("id")), each.get("currentValue")
        if id_ and isinstance(value, str | bool):
            category = string(each.get("category")) or id_
            choices = dict(_choices(each.get("options")))
            yield Option(id=id_, category=category, value=value, choices=choices)


def _choices(options: object) -> Iterator[tuple[str, str]]:
    for each in map(mapping, items(options)):
        if isinstance(each.get("options"), list):  # a group of choices
            yield from _choices([one for one in each["options"] if "options" not in mapping(one)])
        elif value := name(each.get("value")):
            yield value, string(each.get("name"))


@attrs.frozen(kw_only=True)
class SettingChange:
    """One setting to change; ``option`` is the id of its config option, ``""``: an older method."""

    subject: str
    option: str
    value: str | bool

    def request(self, session: str) -> tuple[str, dict[str, Any]]:
        """Return the method and the parameters that make the change."""
        if self.option:
            params = {"sessionId": session, "configId": self.option, "value": self.value}
            if isinstance(self.value, bool):
                params["type"] = "boolean"
            return "session/set_config_option", params
        if self.subject == "mode":
            return "session/set_mode", {"sessionId": session, "modeId": self.value}
        return "session/set_model", {"sessionId": session, "modelId": self.value}


@attrs.frozen
class Impossible:
    """A setting that cannot be reached; ``reason`` continues a sentence about the agent."""

    reason: str


@attrs.frozen(kw_only=True)
class WantedSettings:
    """The settings that a session needs. ``modes``: any of them, the best first.

    ``is_plan``: they are modes for plans.
    """

    modes: tuple[str, ...] = ()
    is_plan: bool = False
    needs_mode: bool = True
    model: str | None = None
    effort: str | None = None
    extra: Mapping[str, str | bool] = attrs.field(factory=dict)


Step = SettingChange | Impossible | None
"""The next change; None: nothing is left to change."""


def next_step(settings: ReportedSettings, wanted: WantedSettings) -> Step:
    """Return the first change that is needed. The mode comes first: nothing runs unasked."""
    step = mode_step(settings, wanted)
    if step is None and wanted.model is not None:
        step = model_step(settings, wanted.model)
    if step is None and wanted.effort is not None:
        step = effort_step(settings, wanted.effort)
    extra = iter(wanted.extra.items())
    while step is None and (pair := next(extra, None)) is not None:
        step = _extra_step(settings, *pair)
    return step


def mode_step(settings: ReportedSettings, wanted: WantedSettings) -> Step:
    """Return the change to the best mode in which the agent asks."""
    offered = settings.offered_modes()
    mode = next((each for each in wanted.modes if each in offered), None)
    if mode is None:
        if wanted.is_plan:
            return Impossible(
                f"has no mode for plans that can be used ({_listed(offered)}): choose another "
                "permission, or another agent"
            )
        if not wanted.needs_mode:
            return None
        return Impossible(
            f"has no mode in which it asks before it acts ({_listed(offered)}): set "
            "'permission: full' in the profile, or use another agent"
        )
    if settings.mode == mode:
        return None
    option = settings.option("mode")
    return SettingChange(subject="mode", option=option.id if option else "", value=mode)


def model_step(settings: ReportedSettings, model: str) -> Step:
    """Return the change to a model, by its id or its name."""
    if settings.option("model") is not None:
        return _selection_step(settings, "model", "model", model)
    if model == settings.old_model:
        return None
    if model in settings.models:
        return SettingChange(subject="model", option="", value=model)
    return Impossible(_not_offered("model", model, settings.models))


def effort_step(settings: ReportedSettings, effort: str) -> Step:
    """Return the change to an effort, by its id or its name."""
    return _selection_step(settings, "thought_level", "effort", effort)


def thinking_refusal(settings: ReportedSettings, thinking: str) -> str | None:
    """Return why thinking cannot be set, as the end of a sentence; None if it is on as wanted.

    ACP has efforts, of which some agents call one "off", and no other setting for it.
    """
    if thinking == "on":
        return None
    option = settings.option("thought_level")
    efforts = f": set an effort ({_listed(tuple(option.choices))})" if option else ""
    return f"has no setting for thinking{efforts}"


def _selection_step(settings: ReportedSettings, category: str, subject: str, wanted: str) -> Step:
    option = settings.option(category)
    choices = option.choices if option else {}
    named = [value for value, label in choices.items() if label == wanted]
    value = wanted if wanted in choices else next(iter(named), None)
    if option is None or value is None:
        return Impossible(_not_offered(subject, wanted, tuple(choices)))
    if option.value == value:
        return None
    return SettingChange(subject=subject, option=option.id, value=value)


def _extra_step(settings: ReportedSettings, id_: str, value: str | bool) -> Step:
    option = next((each for each in settings.options if each.id == id_), None)
    if option is None:
        return Impossible(f"has no option {id_!r}: remove it from the provider")
    if option.value == value and isinstance(option.value, bool) == isinstance(value, bool):
        return None
    return SettingChange(subject=id_, option=id_, value=value)


def is_set(settings: ReportedSettings, change: SettingChange) -> bool:
    """Whether the agent reports the value of a change."""
    if change.option:
        return any(
            each.id == change.option and each.value == change.value for each in settings.options
        )
    return change.value == (settings.mode if change.subject == "mode" else settings.old_model)


def _not_offered(subject: str, wanted: str, offered: tuple[str, ...]) -> str:
    return (
        f"has no {subject} {wanted!r} ({_listed(offered)}): set another {subject} in the profile, "
        "or none"
    )


def _listed(names: tuple[str, ...]) -> str:
    if not names:
        return "it offers none"
    more = ", …" if len(names) > 10 else ""
    return f"it offers {', '.join(repr(each) for each in names[:10])}{more}"
