"""What is fuzzed: each target takes any bytes and asserts what must hold for all of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle

from aegis.processes.capture import CapturedOutput, OutputCapture
from aegis.processes.line import BLOCK, MAX_LINE
from aegis.processes.text import MAX_PARAMETERS, TextCleaner
from aegis.terminals.parse.boundaries import (
    Boundaries,
    BoundaryEvent,
    CommandBegin,
    CommandEnd,
    NoCommand,
    ShellPhase,
)
from aegis.terminals.parse.control_sequences import (
    MAX_STRING_BYTES,
    Bell,
    ControlSequence,
    Escape,
    SequenceScanner,
)
from aegis.terminals.parse.osc133 import (
    MAX_SEQUENCE_BYTES,
    Event,
    Mark,
    MarkParser,
    PasteMode,
    Text,
)
from aegis.terminals.parse.plain import take_plain
from tests.fuzz.grammar import OURS, SECRET, cut, script

MIN_LIMIT = 256
_NOTICE = re.compile(r"(?:^|\n)… (\d+) bytes left out …\n")
_KEYS = (b"x", b"\r", b"\x03", b"ls\r", b"\x1b[200~a\rb", b"\x1b[201~", b"")


def marks(data: bytes) -> None:
    """The parser: every byte comes back, no mark shows the secret, cuts change nothing."""
    stream = b"".join(each for each in script(data) if isinstance(each, bytes))
    events = _parsed([stream])
    assert _parsed(cut(stream)) == events
    assert _without_secret(_stream_of(events)) == _without_secret(stream)
    if OURS not in stream:
        assert _stream_of(events) == stream
    for event in events:
        assert isinstance(event, Text) or SECRET not in _stream_of([event])


def boundaries(data: bytes) -> None:
    """The parser with the state machine behind it, and clients that type and submit."""
    whole = _happenings(data, lambda stream: [stream])
    assert _happenings(data, cut) == whole
    running = False
    for happening in whole:
        if isinstance(happening, CommandBegin):
            assert not running
            running = True
        elif isinstance(happening, CommandEnd):
            assert running
            running = False
        elif isinstance(happening, NoCommand):
            assert not running


def text(data: bytes) -> None:
    """The cleaner: no control character is left, cuts change nothing, little is held back."""
    whole = _cleaned([data])
    assert _cleaned(cut(data)) == whole
    controls = {each for each in whole if unicodedata.category(each) == "Cc"}
    assert controls <= {"\t", "\n"}


def capture(data: bytes) -> None:
    """The bounded text: its limit holds, it is made of both ends, looking changes nothing."""
    limit = MIN_LIMIT + (data[0] if data else 0)
    data = data[1:] * (1 + len(data) % 7)
    full = _cleaned([data])
    output = _captured([data], limit)
    assert _captured(cut(data), limit) == output
    total = len(full.encode())
    assert (output.total_bytes, output.truncated) == (total, total > limit)
    assert len(output.text.encode()) <= limit
    if not output.truncated:
        assert output.text == full
    else:
        assert any(_is_made_of_both_ends(full, output, at) for at in _NOTICE.finditer(output.text))


def queries(data: bytes) -> None:
    """The scanner of sequences: cuts change nothing, each ends where it says, none overlap."""
    whole = _scanned([data])
    assert _scanned(cut(data)) == whole
    last = 0
    for sequence in whole:
        shortest = 1 if isinstance(sequence, Bell) else 2
        assert last + shortest <= sequence.end <= len(data)
        ending = data[last : sequence.end]
        if isinstance(sequence, Escape):
            assert ending.endswith(b"\x1b" + sequence.final)
        else:
            assert ending[-1] in b"\x07\\" or ending[-1:].isalpha()
        last = sequence.end


def plain(data: bytes) -> None:
    """Text by cursors: the texts of calls in a row are the text of one call, and all is taken."""
    data *= 1 + len(data) % 3
    full = take_plain(data, len(data), whole=True)
    assert full.size == len(data)
    controls = {each for each in full.text if unicodedata.category(each) == "Cc"}
    assert controls <= {"\t", "\n"}
    position, seen, texts = 0, 0, list[str]()
    for piece in cycle(cut(data) or [b""]):
        if position == len(data):
            break
        seen = min(seen + len(piece), len(data))
        is_whole = seen == len(data)
        taken = take_plain(data[position:seen], max(4, len(piece)), whole=is_whole)
        assert taken.size > 0 or not is_whole
        texts.append(taken.text)
        position += taken.size
    assert "".join(texts) == full.text


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "marks": marks,
    "boundaries": boundaries,
    "text": text,
    "capture": capture,
    "queries": queries,
    "plain": plain,
}


def _parsed(chunks: Iterable[bytes]) -> list[Event]:
    """The events of ``chunks``, texts that follow each other joined."""
    parser = MarkParser(SECRET)
    events: list[Event] = []
    for event in [*(each for chunk in chunks for each in _fed(parser, chunk)), *parser.close()]:
        if isinstance(event, Text) and events and isinstance(events[-1], Text):
            events[-1] = Text(events[-1].data + event.data)
        else:
            events.append(event)
    return events


def _fed(parser: MarkParser, chunk: bytes) -> list[Event]:
    events = parser.feed(chunk)
    assert len(parser._sequence) + len(parser._incomplete) <= MAX_SEQUENCE_BYTES + len(OURS)
    return events


def _stream_of(events: Iterable[Event]) -> bytes:
    return b"".join(each.visible if isinstance(each, Mark) else each.data for each in events)


def _without_secret(stream: bytes) -> bytes:
    # Again and again: what stands around a secret may become one when that is taken out.
    while OURS in stream:
        stream = stream.replace(OURS, b"")
    return stream


def _happenings(data: bytes, cutting: Callable[[bytes], list[bytes]]) -> list[BoundaryEvent]:
    parser, state = MarkParser(SECRET), Boundaries()
    happenings: list[BoundaryEvent] = []
    for part in script(data):
        if isinstance(part, int):
            _act(state, part)
            continue
        for event in (each for chunk in cutting(part) for each in parser.feed(chunk)):
            happenings += _take(state, event)
    return happenings


def _take(state: Boundaries, event: Event) -> list[BoundaryEvent]:
    if isinstance(event, Text):
        return []
    if isinstance(event, PasteMode):
        return state.paste_mode(event.on)
    skipped = state.skipped
    happenings = state.mark(event)
    assert state.skipped >= skipped
    if event.kind in "CD":
        # The same mark once more is data, whatever the first one was.
        assert state.mark(event) == []
    return happenings


def _act(state: Boundaries, number: int) -> None:
    if state.can_submit():
        assert state.phase is ShellPhase.PROMPT
        assert state.typing is None
    if number % 4 == 0 and state.can_submit():
        state.submitted()
    elif number % 4 == 1:
        state.probed()
    else:
        state.keys("human:ann" if number % 2 else "agent:bob", _KEYS[number % len(_KEYS)])


def _cleaned(chunks: Iterable[bytes]) -> str:
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    for chunk in chunks:
        cleaner.feed(chunk)
        assert len(cleaner.pending) <= MAX_LINE + BLOCK
        assert len(cleaner._incomplete) <= MAX_PARAMETERS + 2
    cleaner.finish()
    return "".join(texts)


def _scanned(chunks: Iterable[bytes]) -> list[ControlSequence]:
    scanner, at = SequenceScanner(), 0
    found: list[ControlSequence] = []
    for chunk in chunks:
        found += scanner.feed(chunk, at)
        at += len(chunk)
        assert len(scanner._incomplete) + len(scanner._content) <= MAX_STRING_BYTES + 100
    return found


def _captured(chunks: Iterable[bytes], limit: int) -> CapturedOutput:
    output = OutputCapture(limit)
    for chunk in chunks:
        output.feed(chunk)
        assert len(output.snapshot().text.encode()) <= limit
    return output.result()


def _is_made_of_both_ends(full: str, output: CapturedOutput, notice: re.Match[str]) -> bool:
    first, last = output.text[: notice.start()], output.text[notice.end() :]
    shown = len(first.encode()) + len(last.encode())
    # A line feed before the notice belongs to the first part or to the notice.
    missing = output.total_bytes - shown - int(notice[1])
    return full.startswith(first) and full.endswith(last) and missing in (0, 1)
