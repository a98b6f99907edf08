"""Tests of the log of clients: commands with their moments, and errors without explanation."""

from __future__ import annotations

from aegis.client.line import CommandFailed
from tests.chaos.checking.observations import Span
from tests.chaos.commands import REAL
from tests.chaos.notebook import Notebook


def sent(book: Notebook) -> str:
    token = book.new_token("t0")
    command = REAL.command(REAL.kinds["quick"], token=token, terminal="t0", writer="ann", life=0)
    book.send(command)
    return token


def test_a_command_is_under_way_until_its_call_is_answered() -> None:
    book = Notebook()
    first, second = sent(book), sent(book)
    span = book.was_answered(second)
    assert [each.token for each in book.commands] == [first, second]
    assert [each.span for each in book.commands] == [Span(1), span]
    assert not span.is_before(Span(1))
    assert span.is_before(Span(book.moment()))


def test_an_error_is_kept_with_its_moments_unless_it_is_pardoned() -> None:
    book = Notebook(pardoned=frozenset({"storage"}))
    asked = book.moment()
    book.was_refused("ann", CommandFailed("storage", "the disk is full"), asked=asked)
    book.was_refused("ann", CommandFailed("busy", "wait"), terminal="t0", asked=asked)
    [refusal] = book.refusals
    assert (refusal.terminal, refusal.code, refusal.span) == ("t0", "busy", Span(1, 2))
    assert str(refusal) == "ann got busy: wait"
