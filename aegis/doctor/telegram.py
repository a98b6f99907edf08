"""The check of the chat of Telegram, if it is configured: the bot works, and who polls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aegis.configuration.file import read_configuration
from aegis.configuration.problems import BadConfiguration
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.doctor.ledgers import survey_of
from aegis.journal.ledger import Line
from aegis.state.root import CONFIG_NAME, StatePaths

SUBJECT = "telegram"
NO_LEDGER = "it was never started: is AEGIS_TELEGRAM_TOKEN set in the environment of the daemon?"


def examine_telegram(state: StatePaths) -> Iterator[Finding]:
    """Yield a finding about the bot; none if Telegram is not configured. Raises ``OSError``."""
    try:
        section = read_configuration(state.root / CONFIG_NAME).configuration.telegram
    except BadConfiguration:
        return  # the check of the configuration reports it
    if section.chat_id is None:
        return
    if not section.user_ids:
        remedy = "name people in telegram.user_ids of .aegis.yaml"
        yield warning(SUBJECT, "nobody may give orders in the chat", remedy)
    if not state.telegram.exists():
        yield warning(SUBJECT, NO_LEDGER, "set it, then: aegis-actors down, aegis-actors up")
        return
    chat: dict[str, Any] = {}

    def note(line: Line) -> None:
        match line.fields:
            case {"id": "chat", "set": dict(changes)}:
                chat.update(changes)
            # The lines of a version before tables, until the chat is started again.
            case {"kind": "problem", "text": text}:
                chat["problem"] = text
            case {"kind": "moved", "old": int(old), "new": int(new)}:
                chat["moved"] = {str(old): new}
            case {"kind": "head", "fold": dict(fold)}:
                chat.update(fold)

    survey_of(state.telegram, lambda line: note(line))
    reason, moved = chat.get("problem"), chat.get("moved")
    if isinstance(reason, str) and reason:
        what, _, remedy = reason.partition(": ")
        yield problem(SUBJECT, what, remedy or "look at the log of the daemon")
    elif isinstance(moved, dict) and str(section.chat_id) in moved:
        new = moved[str(section.chat_id)]
        sentence = f"the group {section.chat_id} is a supergroup now: the bot serves chat {new}"
        yield warning(SUBJECT, sentence, f"write {new} in telegram.chat_id of .aegis.yaml")
    else:
        yield ok(SUBJECT, f"the bot serves chat {section.chat_id}")
