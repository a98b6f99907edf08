"""Kinds of values: the values that a key accepts, and the messages about others. Pure.

YAML guesses the type of a plain word: ``no`` is false, ``0120`` is eighty, ``1:30`` is ninety. Here
the key determines the type, and a word of another type to YAML is refused.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import attrs

from aegis.names import nearest, shorten
from aegis.path_text import MAX_PATH_CHARS

Guess = Literal["text", "nothing", "true or false", "a number", "a date"]

MAX_SHOWN_CHARS = 60
MAX_DIGITS = 40

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")

_ODD = re.compile(r"[-+]?(0[0-9a-zA-Z_]|[0-9]+[_:])|\+[0-9]")
"""Beginnings of numbers that YAML 1.1 reads in another base, as minutes, or with separators."""


class Unfit(Exception):
    """A value does not fit its key; the text follows the name of the key in a sentence."""


@attrs.frozen
class Scalar:
    """A single value of the file; ``guess`` is the type that YAML guesses.

    ``plain``: the value is neither quoted nor a block of text.
    """

    text: str
    guess: Guess = "text"
    plain: bool = True


class ValueKind(Protocol):
    """A kind of values that a key accepts."""

    @property
    def expected(self) -> str:
        """The accepted values as a noun phrase: ``a whole number from 2 to 1000``."""
        ...

    def read(self, scalar: Scalar) -> object:
        """Convert a value of the file. Raises ``Unfit``."""
        ...

    def fits(self, value: Any) -> bool:
        """Return whether a converted value is accepted."""
        ...


@attrs.frozen
class WholeNumber:
    """A whole number in decimal digits, from ``low`` to ``high``, both included."""

    low: int
    high: int
    unit: str = ""

    @property
    def expected(self) -> str:
        return f"a whole number{_of(self.unit)} from {self.low} to {self.high}"

    def read(self, scalar: Scalar) -> int:
        check_given(scalar, self)
        if not scalar.plain or len(scalar.text) > MAX_DIGITS or not _WHOLE.fullmatch(scalar.text):
            raise unfit(scalar, self)
        value = int(scalar.text)
        if not self.fits(value):
            raise unfit(scalar, self)
        return value

    def fits(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high


@attrs.frozen
class DecimalNumber:
    """A number in decimal digits, from ``low`` to ``high``, both included."""

    low: float
    high: float
    unit: str = ""

    @property
    def expected(self) -> str:
        return f"a number{_of(self.unit)} from {self.low:.16g} to {self.high:.16g}"

    def read(self, scalar: Scalar) -> float:
        check_given(scalar, self)
        if not scalar.plain or len(scalar.text) > MAX_DIGITS or not _DECIMAL.fullmatch(scalar.text):
            raise unfit(scalar, self)
        value = float(scalar.text)
        if not self.fits(value):
            raise unfit(scalar, self)
        return value

    def fits(self, value: Any) -> bool:
        return type(value) is float and math.isfinite(value) and self.low <= value <= self.high


@attrs.frozen
class ProgramName:
    """A program: a name that is searched in PATH, or an absolute path."""

    max_chars: int = MAX_PATH_CHARS

    @property
    def expected(self) -> str:
        return "the name of a program or an absolute path"

    def read(self, scalar: Scalar) -> str:
        check_given(scalar, self)
        if scalar.plain and scalar.guess != "text":
            raise Unfit(
                f"must be {self.expected}; YAML takes {shown(scalar)} for {scalar.guess}: if it is "
                "a program, put it in quotes"
            )
        check_length(scalar, self.max_chars)
        if not self.fits(scalar.text):
            raise unfit(scalar, self)
        return scalar.text

    def fits(self, value: Any) -> bool:
        if value is None:
            return True  # the default: no program
        is_sane = type(value) is str and 0 < len(value) <= self.max_chars
        return is_sane and _is_written(value) and ("/" not in value or value.startswith("/"))


@attrs.frozen
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def read(self, scalar: Scalar) -> str:
        check_given(scalar, self)
        if not self.fits(scalar.text):
            raise unfit(scalar, self, nearest(scalar.text[:MAX_SHOWN_CHARS], self.words, most=1))
        return scalar.text

    def fits(self, value: Any) -> bool:
        return type(value) is str and value in self.words


@attrs.frozen
class TrueOrFalse:
    """``true`` or ``false``, and no other word that YAML takes for one."""

    expected: str = "true or false"

    def read(self, scalar: Scalar) -> bool:
        check_given(scalar, self)
        if not scalar.plain or scalar.text not in ("true", "false"):
            raise unfit(scalar, self)
        return scalar.text == "true"

    def fits(self, value: Any) -> bool:
        return type(value) is bool


@attrs.frozen
class OneLine:
    """One line of text that matches ``pattern`` as a whole; ``expected`` describes it."""

    expected: str
    pattern: str
    max_chars: int

    def read(self, scalar: Scalar) -> str:
        check_given(scalar, self)
        check_length(scalar, self.max_chars)
        if not self.fits(scalar.text):
            raise unfit(scalar, self)
        return scalar.text

    def fits(self, value: Any) -> bool:
        is_sane = type(value) is str and len(value) <= self.max_chars and _is_written(value)
        return is_sane and re.fullmatch(self.pattern, value) is not None


@attrs.frozen
class SeveralLines:
    """A text of several lines."""

    max_chars: int

    @property
    def expected(self) -> str:
        return f"a text of at most {self.max_chars} characters"

    def read(self, scalar: Scalar) -> str:
        check_given(scalar, self)
        check_length(scalar, self.max_chars)
        if not self.fits(scalar.text):
            raise unfit(scalar, self)
        return scalar.text

    def fits(self, value: Any) -> bool:
        is_text = type(value) is str and 0 < len(value) <= self.max_chars
        return is_text and _is_written(value.replace("\n", "").replace("\t", ""))


@attrs.frozen
class Several:
    """A list of at most ``most`` values of one kind; a single value is a list of one."""

    item: ValueKind
    most: int

    @property
    def expected(self) -> str:
        return f"a list of at most {self.most}, each {self.item.expected}"

    def fits(self, value: Any) -> bool:
        is_list = type(value) is tuple and len(value) <= self.most
        return is_list and all(self.item.fits(each) for each in value)


@attrs.frozen
class Mapped:
    """A mapping of at most ``most`` names to values of one kind, or to lists of them."""

    name: ValueKind
    item: ValueKind | Several
    most: int

    @property
    def expected(self) -> str:
        values = "lists" if isinstance(self.item, Several) else "texts"
        return f"a mapping of at most {self.most} names ({self.name.expected}) to {values}"

    def fits(self, value: Any) -> bool:
        is_mapping = type(value) is dict and len(value) <= self.most
        return is_mapping and all(
            self.name.fits(name) and self.item.fits(each) for name, each in value.items()
        )


AnyKind = ValueKind | Several | Mapped
"""A kind of one value, or of several."""


def check_length(scalar: Scalar, limit: int) -> None:
    """Raise ``Unfit`` if the value is longer than ``limit`` characters."""
    if len(scalar.text) > limit:
        raise Unfit(f"must be at most {limit} characters long, not {len(scalar.text)}")


def check_given(scalar: Scalar, kind: ValueKind) -> None:
    """Raise ``Unfit`` if the key has no value."""
    if scalar.plain and scalar.guess == "nothing":
        raise Unfit(f"has no value: give {kind.expected}, or leave the key out")


def unfit(scalar: Scalar, kind: ValueKind, close: Sequence[str] = ()) -> Unfit:
    """Return the error for a value that is not of this kind; ``close`` are similar ones."""
    quoted = "" if scalar.plain else "the quoted "
    remedy = f"; did you mean {close[0]!r}?" if close else _remedy(scalar, kind)
    return Unfit(f"must be {kind.expected}, not {quoted}{shown(scalar)}{remedy}")


def _remedy(scalar: Scalar, kind: ValueKind) -> str:
    """Return what to do about a number in a notation that is not accepted."""
    if not isinstance(kind, WholeNumber | DecimalNumber):
        return ""
    if not scalar.plain:
        return ": leave the quotes out" if _DECIMAL.fullmatch(scalar.text) else ""
    is_odd = _ODD.match(scalar.text) and not _WHOLE.fullmatch(scalar.text)
    return "; write it in plain decimal digits" if is_odd else ""


def shown(scalar: Scalar) -> str:
    """Return the value for a sentence: shortened, on one line, escaped."""
    text = shorten(scalar.text, MAX_SHOWN_CHARS)
    return text if scalar.plain and _DECIMAL.fullmatch(text) else repr(text)


def _is_written(text: str) -> bool:
    """Return whether ``text`` has neither control characters nor surrogates."""
    return not any(unicodedata.category(each) in ("Cc", "Cs") for each in text)


def _of(unit: str) -> str:
    return f" of {unit}" if unit else ""
