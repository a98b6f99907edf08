"""The switches between main and alternate screen among sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aegis.terminals.parse.control_sequences import ControlSequence
from aegis.terminals.screen.modes import alternate_switch


def switches_in(sequences: Iterable[ControlSequence]) -> Iterator[tuple[int, bool]]:
    """Yield the offset behind each switch, and whether the alternate screen is shown from there."""
    for sequence in sequences:
        alternate = alternate_switch(sequence)
        if alternate is not None:
            yield sequence.end, alternate
