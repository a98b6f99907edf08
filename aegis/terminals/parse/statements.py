"""The statements of a program about what it does: titles, notifications, reports. Pure."""

from __future__ import annotations

from aegis.lifecycle.events import PromptBegun, TerminalReset
from aegis.lifecycle.notices import Notice, ProgressNotice, TitleChanged, read_notice, read_title
from aegis.lifecycle.reports import Report, read_report
from aegis.terminals.parse.control_sequences import Bell, ControlSequence, Escape, Osc

Statement = Report | TitleChanged | Notice | ProgressNotice | PromptBegun | TerminalReset


def statement_of(sequence: ControlSequence) -> Statement | None:
    """Return the statement that ``sequence`` makes; None if it makes none."""
    match sequence:
        case Bell():
            return Notice()
        case Escape(final=b"c"):
            return TerminalReset()
        case Osc(number=7501, content=content, ending=ending):
            return read_report(content, ending)
        case Osc(number=0 | 2, content=content):
            return read_title(content)
        case Osc(number=133, content=content):
            return PromptBegun() if content == b"A" or content.startswith(b"A;") else None
        case Osc(number=9 | 99 | 777 as number, content=content):
            return read_notice(number, content)
        case _:
            return None
