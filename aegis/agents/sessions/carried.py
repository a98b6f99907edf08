"""The fold of a transcript as JSON, for the head line of its next file. Pure."""

from __future__ import annotations

from typing import Any

from actors.codec import structure, unstructure
from aegis.agents.sessions.metrics import Meter
from aegis.agents.sessions.past import EndedTurn, OpenTurn, SessionPast, Takeover
from aegis.protocol.agent_events import PlanStep, SlashCommand, TerminalEnded

_SIMPLE = ("turn", "launches", "conversation", "is_closed", "reopened", "at")


def carried(past: SessionPast) -> dict[str, Any]:
    """Return a fold as an object of JSON values."""
    return {
        **{name: getattr(past, name) for name in _SIMPLE},
        "open_turn": None if past.open_turn is None else _turn_fields(past.open_turn),
        "unreported": [
            {"turn": _turn_fields(turn), "outcome": outcome, "reason": reason}
            for turn, outcome, reason in past.unreported.values()
        ],
        "known": [*past.known],
        "texts": [*past.texts],
        "meter": past.meter.fields(),
        "ended": [unstructure(each) for each in past.ended],
        **({"plan": [unstructure(each) for each in past.plan]} if past.plan else {}),
        **({"taken_over": unstructure(past.taken_over)} if past.taken_over else {}),
        **({"terminals": terminals} if (terminals := _terminals(past)) else {}),
        **({} if past.commands is None else {"commands": [*map(unstructure, past.commands)]}),
    }


def _terminals(past: SessionPast) -> list[dict[str, Any]]:
    return [unstructure(each) for each in past.terminals.values()]


def restored(fields: dict[str, Any]) -> SessionPast:
    """Return the fold of which ``carried`` made an object.

    Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``CodecError`` for any other object.
    """
    past = SessionPast(**{name: fields[name] for name in _SIMPLE})
    if fields["open_turn"] is not None:
        past.open_turn = _turn(fields["open_turn"])
    for each in fields["unreported"]:
        turn = _turn(each["turn"])
        past.unreported[turn.number] = turn, each["outcome"], each["reason"]
    past.known = dict.fromkeys(fields["known"])
    past.texts = [*fields["texts"]]
    past.meter = Meter.of(fields["meter"])
    # None of these is in the files of older versions.
    past.ended = [structure(EndedTurn, each) for each in fields.get("ended", ())]
    past.plan = [structure(PlanStep, each) for each in fields.get("plan", ())]
    for each in fields.get("terminals", ()):
        ended = structure(TerminalEnded, each)
        past.terminals[ended.terminal] = ended
    if "taken_over" in fields:
        past.taken_over = structure(Takeover, fields["taken_over"])
    if "commands" in fields:
        past.commands = [structure(SlashCommand, each) for each in fields["commands"]]
    return past


def _turn_fields(turn: OpenTurn) -> dict[str, Any]:
    return {
        "number": turn.number,
        "uuid": turn.uuid,
        "messages": [[*each] for each in turn.messages],
    }


def _turn(fields: dict[str, Any]) -> OpenTurn:
    messages = tuple((message_id, sender) for message_id, sender in fields["messages"])
    return OpenTurn(number=fields["number"], uuid=fields["uuid"], messages=messages)
