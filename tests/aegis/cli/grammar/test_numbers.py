"""Numbers of the command line: what is no finite number in ASCII digits is refused, everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import pytest

from aegis.cli.grammar.click_program import cli
from aegis.cli.grammar.numbers import decimal, seconds, whole_number
from aegis.cli.grammar.parsing import read_line

if TYPE_CHECKING:
    from click.testing import Result

Invoke = Callable[..., "Result"]

NO_NUMBERS = [
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "1_0",
    "\u0661",
    "1\u0663",
    "",
    " 5",
    "5 ",
    "0x1",
    "1e",
]
NO_TIMES = ["-1", "-0.5", "1e10"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_is_refused(text: str) -> None:
    for read in (whole_number, decimal, seconds):
        with pytest.raises(ValueError, match="is not a"):
            read(text)


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give seconds, 0 or more"):
        seconds(text)


@pytest.mark.parametrize("text", ["1e400", "-1e400"])
def test_a_number_beyond_every_float_is_refused(text: str) -> None:
    for read in (decimal, seconds):
        with pytest.raises(ValueError, match="not a valid float"):
            read(text)


def test_a_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid integer"):
        whole_number("9" * 5000)


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5.0), ("+5", 5.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0)]
)
def test_what_is_a_number_is_read(text: str, value: float) -> None:
    assert (decimal(text), seconds(text)) == (value, value)


def numeric_options() -> Iterator[tuple[list[str], str]]:
    """Every option that takes a number, with its verb."""
    pending: list[tuple[list[str], click.Command]] = [([], cli)]
    while pending:
        words, command = pending.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            names = command.list_commands(context)
            found = [(name, command.get_command(context, name)) for name in names]
            pending += [([*words, name], each) for name, each in found if each is not None]
        for each in command.params:
            if isinstance(each, click.Option) and each.type.name.split()[0] in ("integer", "float"):
                yield words, each.opts[0]


OPTIONS = sorted(numeric_options())


def test_the_options_that_take_a_number_are_found() -> None:
    assert (["term", "run"], "--timeout") in OPTIONS
    assert len(OPTIONS) > 20


@pytest.mark.parametrize(("words", "option"), OPTIONS, ids=str)
def test_every_option_refuses_what_is_no_number(
    invoke: Invoke, words: list[str], option: str
) -> None:
    for text in NO_NUMBERS:
        line = [*words, option, text, "name", "word"]
        assert read_line(line) is None
        result = invoke(*line)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"aegis-actors: Invalid value for '{option}': {text!r} is")
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [["term", "run"], ["term", "wait"], ["inbox", "wait"]], ids=str)
def test_every_time_is_finite_and_not_below_zero(invoke: Invoke, verb: list[str]) -> None:
    for text in NO_TIMES:
        result = invoke(*verb, "--timeout", text, "name", "word")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "is not a time: give seconds, 0 or more" in result.stderr


@pytest.mark.parametrize("text", ["nan", "1_0", "\u0663"])
def test_an_argument_refuses_what_is_no_number(invoke: Invoke, text: str) -> None:
    result = invoke("term", "resize", "build", text, "20")
    assert result.exit_code == 2
    assert f"{text!r} is not a valid integer" in result.stderr
