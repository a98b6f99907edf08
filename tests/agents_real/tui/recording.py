"""Recordings of interactive programs on a terminal, with the true state at each moment. Pure.

A recording is a gzipped file of JSON lines: first ``about``, then the events in the order of their
time. ``load`` reads one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from aegis.processes.input_wait import Foreground

RECORDINGS = Path(__file__).resolve().parent / "recordings"
SUFFIX = ".jsonl.gz"

State: TypeAlias = Literal["working", "needs_input", "exited"]
Json: TypeAlias = dict[str, Any]


@attrs.frozen(kw_only=True)
class Output:
    """A chunk that the program wrote."""

    t: float
    data: bytes


@attrs.frozen(kw_only=True)
class Keys:
    """Keystrokes that were sent to the program."""

    t: float
    data: bytes


@attrs.frozen(kw_only=True)
class Answer:
    """The terminal's answers to queries in the output; not keystrokes."""

    t: float
    data: bytes


@attrs.frozen(kw_only=True)
class Resized:
    """The window got a new size."""

    t: float
    rows: int
    cols: int


@attrs.frozen(kw_only=True)
class TtySample:
    """The foreground of the tty; None: unknown. Stored when it differs from the last sample.

    Its ``group`` is the ordinal of a process group in this recording, not its id.
    """

    t: float
    front: Foreground | None


@attrs.frozen(kw_only=True)
class Hook:
    """A hook event of Claude Code, with the fields that the program gave."""

    t: float
    event: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class ModelEvent:
    """A request that reached the scripted model, or the end of its answer.

    ``aside``: the program asks for itself, a title for example.
    """

    t: float
    event: Literal["request", "end"]
    number: int
    aside: bool = False
    outcome: str = ""


@attrs.frozen(kw_only=True)
class Truth:
    """The true state from ``t`` on, as the script of the recording knows it.

    ``kind`` of ``needs_input``: ``idle`` (the program's prompt), ``permission``, ``question``,
    ``input``, ``secret``. ``shown`` is text on the screen at this moment; it is empty where the
    state follows from a keystroke or from the model.
    """

    t: float
    state: State
    kind: str = ""
    because: str
    shown: str = ""


@attrs.frozen(kw_only=True)
class Exited:
    """The program ended; ``code`` is minus the number of a signal that ended it."""

    t: float
    code: int


Event: TypeAlias = Output | Keys | Answer | Resized | TtySample | Hook | ModelEvent | Truth | Exited
_CLASSES: Mapping[str, type[Any]] = {
    "output": Output,
    "keys": Keys,
    "answer": Answer,
    "size": Resized,
    "tty": TtySample,
    "hook": Hook,
    "model": ModelEvent,
    "truth": Truth,
    "exit": Exited,
}
_NAMES = {made: name for name, made in _CLASSES.items()}


@attrs.frozen(kw_only=True)
class About:
    """The description of a recording; times are seconds from the start of the program.

    ``reports_asked``: the terminal answered the query for status reports (OSC 7501).
    """

    name: str
    program: str
    version: str
    how: str
    rows: int = 24
    cols: int = 80
    sampled_every_s: float
    reports_asked: bool = True


@attrs.frozen(kw_only=True)
class Recording:
    """A recording: its description, and its events in the order of time."""

    about: About
    events: tuple[Event, ...]

    def truths(self) -> list[Truth]:
        """Return the changes of the true state."""
        return [each for each in self.events if isinstance(each, Truth)]


def names() -> list[str]:
    """Return the names of all recordings."""
    return sorted(each.name.removesuffix(SUFFIX) for each in RECORDINGS.glob(f"*{SUFFIX}"))


def load(name: str) -> Recording:
    """Return the recording with this name."""
    lines = gzip.decompress((RECORDINGS / f"{name}{SUFFIX}").read_bytes()).decode().splitlines()
    about = About(**json.loads(lines[0])["about"])
    return Recording(about=about, events=tuple(_event(json.loads(line)) for line in lines[1:]))


def save(recording: Recording, directory: Path = RECORDINGS) -> Path:
    """Write a recording; return its file."""
    path = directory / f"{recording.about.name}{SUFFIX}"
    # Without the time in its header, the same events make the same file.
    path.write_bytes(gzip.compress(text_of(recording).encode(), 9, mtime=0))
    return path


def text_of(recording: Recording) -> str:
    """Return a recording as JSON lines."""
    return "".join(f"{json.dumps(line)}\n" for line in _lines(recording))


def _lines(recording: Recording) -> Iterator[Json]:
    yield {"about": attrs.asdict(recording.about)}
    for event in recording.events:
        # Recordings from before a doubt was reported have none.
        known = attrs.asdict(
            event, filter=lambda field, value: (field.name, value) != ("doubt", None)
        )
        fields = {name: _plain(value) for name, value in known.items()}
        yield {"is": _NAMES[type(event)], **fields, "t": round(event.t, 3)}


def _plain(value: object) -> object:
    # A chunk can end inside a character: an incomplete one is kept byte by byte.
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _event(line: Json) -> Event:
    made = _CLASSES[line.pop("is")]
    if "data" in line:
        line["data"] = line["data"].encode("utf-8", "surrogateescape")
    if line.get("front") is not None:
        line["front"] = Foreground(**line["front"])
    event: Event = made(**line)
    return event


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events in the order of their time, simultaneous ones as they were added."""
    return tuple(sorted(events, key=lambda event: event.t))
