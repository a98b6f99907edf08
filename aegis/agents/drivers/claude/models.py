"""The models that Claude Code lists, and the efforts of each. Pure.

It takes any name of a model, and any effort, without a word: a wrong one has no effect, or fails
the first request.
"""

from __future__ import annotations

import re

from aegis.agents.drivers.claude.frames import items, mapping, name
from aegis.agents.drivers.harness import Frame
from aegis.protocol.agent_events import OfferedModel

MAX_MODELS = 64
MAX_EFFORTS = 16

ALIAS = re.compile(r"[a-z]{1,32}\Z")
"""A short name. Every other name is that of a provider, whose models are not all listed."""

UNLISTED = ("default", "opusplan")
"""Short names that it takes and may not list."""


def read_models(reply: Frame, given: str | None = None) -> tuple[OfferedModel, ...]:
    """Return the models in the reply to ``initialize``; older versions list none.

    It lists the model with which it was started, ``given``, also if there is no such model. A model
    that decides itself how long it thinks, by its effort, has no other setting for that.
    """
    models = [_model(mapping(each)) for each in items(reply.get("models"))[:MAX_MODELS]]
    return tuple(each for each in models if each.name and not each.name == each.full_name == given)


def _model(listed: Frame) -> OfferedModel:
    efforts = map(name, items(listed.get("supportedEffortLevels"))[:MAX_EFFORTS])
    return OfferedModel(
        name=name(listed.get("value")),
        title=name(listed.get("displayName")),
        full_name=name(listed.get("resolvedModel")),
        efforts=[*filter(None, efforts)],
        sets_thinking=listed.get("supportsAdaptiveThinking") is not True,
    )


def refuse_model(models: tuple[OfferedModel, ...], model: str) -> str | None:
    """Return why a model cannot be set, in one sentence; None if it may be one."""
    known = {each.name for each in models} | {each.full_name for each in models}
    if not models or model in known or model in UNLISTED or not ALIAS.match(model):
        return None
    offered = _listed([each.name for each in models])
    return (
        f"Claude Code has no model {model!r} (it offers {offered}, and full names): set another "
        "model in the profile, or none"
    )


def refuse_effort(models: tuple[OfferedModel, ...], model: str | None, effort: str) -> str | None:
    """Return why an effort cannot be set for a model, in one sentence; None if it can."""
    wanted = model or "default"
    meant = [each for each in models if wanted in (each.name, each.full_name)]
    efforts = list(dict.fromkeys(level for each in meant or models for level in each.efforts))
    if not models or effort in efforts:
        return None
    offers = f"it offers {_listed(efforts)}" if efforts else "it offers none"
    return (
        f"Claude Code has no effort {effort!r} for the model {wanted!r} ({offers}): set another "
        "effort in the profile, or none"
    )


def refuse_thinking(
    models: tuple[OfferedModel, ...], model: str | None, thinking: str
) -> str | None:
    """Return why thinking cannot be set for a model, in one sentence; None if it can.

    Claude Code takes it for a model that adapts too, without any effect.
    """
    wanted = model or "default"
    meant = [each for each in models if wanted in (each.name, each.full_name)]
    if thinking == "on" or all(each.sets_thinking for each in meant):
        return None
    return (
        f"the model {wanted!r} of Claude Code decides itself how long it thinks, so thinking "
        f"{thinking!r} would have no effect: set its effort, or another model"
    )


def thinking_tokens(thinking: str) -> int | None:
    """Return the limit of thinking, in tokens, as Claude Code takes it; None: its default."""
    return {"on": None, "off": 0}[thinking] if thinking in ("on", "off") else int(thinking)


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
