"""Requests as dialogs of an editor, and settings as its modes and options. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeGuard, get_args

import attrs

from aegis.acp.updates import KINDS, call_title, text_content
from aegis.agents.drivers.acp.frames import items, mapping
from aegis.protocol.agent_events import OfferedModel, OptionKind
from aegis.protocol.agents import AgentInfo, Permission, ProfileInfo
from aegis.protocol.requests import Choice, Decision, RequestInfo, Scope, options_to_name

AcpKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_ACP_KINDS: dict[OptionKind, AcpKind] = {
    "allow_once": "allow_once",
    "allow_session": "allow_always",
    "deny": "reject_once",
    "deny_session": "reject_always",
}

_PLAIN = (
    Choice(id="", name="Allow", kind="allow_once"),
    Choice(id="", name="Deny", kind="deny"),
)
"""The options of a request that has none of its own."""

MAX_INDENTED_CHARS = 64 * 1024
"""A longer input is shown on one line, and whole: it has a limit of its own."""

MODES: dict[Permission, str] = {
    "read": "Reads only; everything else is refused.",
    "plan": "Plans, and asks you to approve the plan.",
    "ask": "Asks you before it writes files or runs programs.",
    "write": "Writes files, and asks you before it runs programs.",
    "full": "Asks you nothing.",
}
"""The permissions of sessions, with what they mean."""

DEFAULT_EFFORT = "default"
"""The effort of a session for which none was set."""

THINKING = {"on": "On", "off": "Off"}
"""The settings of thinking besides a number of tokens, with their names."""


@attrs.frozen(kw_only=True)
class DialogOption:
    """One button of a dialog, and the answer that it gives. ``value`` answers a question."""

    id: str
    name: str
    kind: AcpKind
    answer: Decision
    scope: Scope = "once"
    option: str = ""
    value: str = ""

    @property
    def document(self) -> dict[str, str]:
        """The option as ACP has it."""
        return {"optionId": self.id, "name": self.name, "kind": self.kind}


@attrs.frozen(kw_only=True)
class EditorDialog:
    """One dialog: its title and text, and its options. ``question`` is the one that it asks."""

    title: str
    text: str
    options: list[DialogOption]
    question: str = ""


def dialogs_of(request: RequestInfo) -> list[EditorDialog]:
    """Return the dialogs that answer a request, one after another."""
    if request.kind == "permission":
        return [_permission(request)]
    asked = [mapping(each) for each in items((request.input or {}).get("questions"))]
    can_choose = all(_labels(each) and not each.get("multiSelect") for each in asked)
    if request.kind == "question" and asked and can_choose:
        return [_question(each) for each in asked]
    # A form, an address or a free text has no place in a dialog with buttons.
    return [
        EditorDialog(
            title=_title(request),
            text=f"{_input(request)}\n\nAnswer it with: aegis-actors request show {request.id}",
            options=[_option(1, Choice(id="", name="Decline", kind="deny"), request)],
        )
    ]


def _permission(request: RequestInfo) -> EditorDialog:
    offered = request.options or list(_PLAIN)
    if not any(each.kind == "deny" for each in offered):
        offered = [*offered, _PLAIN[1]]
    if request.input is None:  # it is not shown whole
        offered = [each for each in offered if each.kind.startswith("deny")]
    if request.no_session_scope:
        offered = [each for each in offered if each.kind != "allow_session"]
    options = [_option(number, each, request) for number, each in enumerate(offered, 1)]
    if request.default_to_no:
        options.sort(key=lambda each: each.answer == "allow")
    return EditorDialog(
        title=_title(request), text=request.plan or _input(request), options=options
    )


def _option(number: int, choice: Choice, request: RequestInfo) -> DialogOption:
    # Options of different effects may have one id of the agent.
    kind = _ACP_KINDS[choice.kind]
    named = [each.id for each in options_to_name(request, choice.kind)]
    return DialogOption(
        id=f"{kind}_{number}",
        name=choice.name or choice.id or kind,
        kind=kind,
        answer="allow" if choice.kind.startswith("allow") else "deny",
        scope="session" if choice.kind.endswith("session") else "once",
        option=choice.id if choice.id in named else "",
    )


def _question(asked: dict[str, Any]) -> EditorDialog:
    text = str(asked.get("question", ""))
    labels = [
        DialogOption(
            id=f"label_{number}", name=label, kind="allow_once", answer="allow", value=label
        )
        for number, label in enumerate(_labels(asked), 1)
    ]
    decline = DialogOption(id="decline", name="Decline", kind="reject_once", answer="deny")
    details = [
        f"- {each['label']}: {each['description']}"
        for each in map(mapping, items(asked.get("options")))
        if _is_label(each.get("label")) and each.get("description")
    ]
    shown = "\n".join([text, *details])
    return EditorDialog(title=text, text=shown, options=[*labels, decline], question=text)


def _labels(asked: dict[str, Any]) -> list[str]:
    found = (mapping(each).get("label") for each in items(asked.get("options")))
    return [each for each in found if _is_label(each)]


def _is_label(label: object) -> TypeGuard[str]:
    return isinstance(label, str) and bool(label)


def _title(request: RequestInfo) -> str:
    title = request.title or request.tool or f"a {request.kind}"
    return call_title(title, request.input or {}) if request.kind == "permission" else title


def _input(request: RequestInfo) -> str:
    if request.input is None:
        return f"{request.excerpt}…\n({request.input_bytes} bytes: it can only be denied)"
    shown = json.dumps(request.input, ensure_ascii=False, indent=2)
    if len(shown) > MAX_INDENTED_CHARS:
        shown = json.dumps(request.input, ensure_ascii=False)
    return "\n".join(filter(None, [request.reason, shown]))


def call_of(request: RequestInfo, dialog: EditorDialog, tool_use: str) -> dict[str, Any]:
    """Return the tool call of a dialog; ``tool_use`` is the agent's id of it."""
    return {
        "toolCallId": tool_use or f"request_{request.id}",
        "title": dialog.title,
        "kind": "switch_mode" if request.plan else KINDS.get(request.tool_kind, request.tool_kind),
        "status": "pending",
        "rawInput": request.input or {},
        "content": [text_content(dialog.text)],
    }


def modes_of(info: AgentInfo) -> dict[str, Any]:
    """Return the modes of a session: its permission, and the others."""
    return {
        "currentModeId": info.permission or "ask",
        "availableModes": [
            {"id": name, "name": name.capitalize(), "description": text}
            for name, text in MODES.items()
        ],
    }


def options_of(
    info: AgentInfo, models: Sequence[OfferedModel], profiles: Sequence[ProfileInfo]
) -> list[dict[str, Any]]:
    """Return the options of a session: its permission, model, effort and thinking.

    ``models`` are those that its agent lists; without any those of the ``profiles`` are offered.
    """
    return [*_options_of(info, models, profiles)]


def _options_of(
    info: AgentInfo, models: Sequence[OfferedModel], profiles: Sequence[ProfileInfo]
) -> Iterator[dict[str, Any]]:
    permissions = [
        {"value": name, "name": name.capitalize(), "description": text}
        for name, text in MODES.items()
    ]
    yield _select("mode", "Permission", "mode", info.permission or "ask", permissions)
    of_provider = [each.model for each in profiles if each.provider == info.provider]
    listed = models or [OfferedModel(name=each) for each in dict.fromkeys(of_provider) if each]
    current = _current(info.model, listed)
    if current is not None:
        # Its agent takes models that it does not list, too.
        known = listed if current in listed else [current, *listed]
        shown = [
            {"value": each.name, "name": each.title or each.name, "description": each.full_name}
            for each in known
        ]
        yield _select("model", "Model", "model", current.name, shown)
    efforts = [*(current.efforts if current else ())]
    if efforts or info.effort:
        value = info.effort or DEFAULT_EFFORT
        names = dict.fromkeys([*([] if value in efforts else [value]), *efforts])
        listed_efforts = [{"value": each, "name": each.capitalize()} for each in names]
        yield _select("effort", "Effort", "thought_level", value, listed_efforts)
    if info.thinking or (models and current is not None and current.sets_thinking):
        value = info.thinking or "on"
        ways = [{"value": each, "name": name} for each, name in THINKING.items()]
        tokens = [] if value in THINKING else [{"value": value, "name": f"{value} tokens"}]
        yield _select("thinking", "Thinking", "", value, [*ways, *tokens])


def _current(model: str, models: Sequence[OfferedModel]) -> OfferedModel | None:
    """Return the model of a session; None: it is not known."""
    wanted = model or "default"
    found = [each for each in models if each.name == wanted]
    found += [each for each in models if each.full_name == wanted]
    named = OfferedModel(name=model) if model else None
    return found[0] if found else named


def _select(
    id_: str, name: str, category: str, value: str, options: list[dict[str, str]]
) -> dict[str, Any]:
    return {
        "type": "select",
        "id": id_,
        "name": name,
        **({"category": category} if category else {}),
        "currentValue": value,
        "options": options,
    }


def is_permission(value: object) -> bool:
    """Return whether ``value`` is the name of a permission."""
    return value in get_args(Permission)
