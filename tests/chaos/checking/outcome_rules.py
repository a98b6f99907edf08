"""Rules for outcomes: a record says truly how its command ended, under any fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Command
from tests.chaos.checking.observations import Disturbance, Record, Span
from tests.chaos.checking.rule import Rule

PROMPT = "$ "
"""The prompt of the shells under load."""

SIGINT, SIGKILL = 2, 9

INTO_OUTPUT = ("keys", "interrupt", "signal", "shell killed")
"""Harm that may print into the output, or remove lines from its end or middle."""

End = tuple[str, int | None]


def _outcomes(case: Case) -> Iterator[str]:
    """Find records with a wrong end, exit or output.

    A killed command has a beginning of its output. A command that was disturbed on purpose may have
    ended by the disturbance.
    """
    ended = set(case.evidence.ended)
    for _, record, command in case.matched:
        if command is None:
            continue
        harms = case.harms_to(command, record)
        if record["end"] == "killed_by_restart":
            yield from _killed(case, command, record)
        else:
            yield from _by_itself(case, command, record, harms)
            explained = harms or record["end"] == "closed" or command.is_silent
            explained = explained or _ended_with_the_shell(case, command, record)
            if not explained and command.token not in ended:
                yield f"{command.token} is {record['end']} and did not run to its end"
        yield from _output(case, command, record, harms)


def _by_itself(
    case: Case, command: Command, record: Record, harms: list[Disturbance]
) -> Iterator[str]:
    got = (record["end"], record["exit"])
    allowed: set[End] = {(command.end, command.exit)}
    allowed.update(end for harm in harms for end in _ends_by(harm))
    if _may_be_closed(case, command, record):
        allowed.add(("closed", None))
    if _ended_with_the_shell(case, command, record):
        allowed.add(("shell_exit", None))
    if got not in allowed:
        yield f"{command.token} should be {sorted(allowed, key=str)} and is {got}"
    if record["killed_by_restart"]:
        yield f"{command.token} is {got} and marked as killed by a restart"


def _killed(case: Case, command: Command, record: Record) -> Iterator[str]:
    """Find errors in the record of a command that was killed: it has no duration."""
    if record["exit"] is not None or not record["killed_by_restart"]:
        yield f"{command.token} was killed and is recorded with {record}"
    stopped = command.life in case.stopping_lives or case.may_be_crashed(command, record)
    if not stopped and record["duration_s"] is not None:
        yield f"{command.token} was killed and has a duration of {record['duration_s']} s"


def _ends_by(harm: Disturbance) -> Iterator[End]:
    """Return the ways in which a command with this disturbance may end."""
    if harm.kind == "interrupt":
        yield "exited", 128 + SIGINT
    elif harm.kind == "signal" and harm.number is not None:
        yield "exited", 128 + harm.number
    elif harm.kind == "shell killed":
        yield "shell_exit", 128 + SIGKILL


def _ended_with_the_shell(case: Case, command: Command, record: Record) -> bool:
    """Return whether the command waited behind a typed line that ended the shell.

    Its caller got its number, so it is recorded although it did not start.
    """
    if record["end"] != "shell_exit" or command.typed or command.token in case.evidence.begun:
        return False
    return any(
        each["seq"] == record["seq"] - 1 and each["end"] == "shell_exit"
        for each in case.evidence.ledgers[command.terminal]
    )


def _may_be_closed(case: Case, command: Command, record: Record) -> bool:
    finished = case.finished[command.terminal, record["seq"]].answered
    return False in case.may_be_open(command.terminal, Span(command.span.asked, finished))


def _output(
    case: Case, command: Command, record: Record, harms: list[Disturbance]
) -> Iterator[str]:
    if case.is_rebuilt_from_less(command.terminal, record, command.span):
        return
    printed, token = record["stdout"], command.token
    if _ended_with_the_shell(case, command, record):
        is_right = not printed
    elif record["end"] == "closed" or any(harm.kind in INTO_OUTPUT for harm in harms):
        is_right = _is_some_of(_without_echo(printed, harms), command)
    elif record["end"] == "killed_by_restart":
        # Killed between its end and its record: the raw log has the prompt as well.
        is_right = f"{command.stdout}{PROMPT}".startswith(printed)
    else:
        is_right = printed == command.stdout
    if not is_right:
        yield f"{token} prints {command.stdout!r}, recorded is {printed!r} ({record['end']})"


def _without_echo(printed: str, harms: list[Disturbance]) -> str:
    """Return the output without the echo of typed lines, which may end inside a line of output."""
    typed = [line for harm in harms for line in harm.text.splitlines() if line]
    for line in sorted(typed, key=len, reverse=True):
        printed = printed.replace(line, "")
    return printed


def _is_some_of(printed: str, command: Command) -> bool:
    """Return whether the lines with the token are lines of the command, or beginnings, in order."""
    lines = iter(command.stdout.splitlines())
    return all(
        any(line.startswith(shown.replace("^C", "").rstrip()) for line in lines)
        for shown in printed.splitlines()
        if command.token in shown
    )


OUTCOME_RULES: dict[str, Rule] = {"outcome": Rule("G2", _outcomes)}
