"""The programs of the simulated shell: the ones that tests need.

``sleep``, ``witness`` and ``play`` run as processes of their own. ``witness WORD …`` adds the words
to the log of the machine. ``play WHAT …`` is one program for every kind of use of a terminal:

| command | does |
|---|---|
| ``play exit CODE`` | ends with this code |
| ``play die SIGNAL`` | signals itself |
| ``play print LINES PER_CHUNK PAUSE`` | prints lines, with a pause of seconds between chunks |
| ``play repeat WORD TIMES`` | prints a word and the number of its line so many times |
| ``play flood BYTES`` | prints as fast as the terminal takes it |
| ``play ask TEXT`` | prints the text, reads a line, prints it |
| ``play secret TEXT`` | the same without echo; prints how long it was |
| ``play keys TEXT`` | prints the text, reads a single key |
| ``play forge`` | prints end marks: without a secret, and with a wrong one |
| ``play half`` | prints the beginning of a mark, and ends |
| ``play hang SECONDS`` | prints a line, and ignores Ctrl-C for so long |
| ``play stay HOW SECONDS`` | leaves a child behind and ends |

The child that stays ignores HUP (``nohup``), has a session of its own (``setsid``), ignores HUP and
TERM (``deaf``), or ignores HUP and keeps the terminal open (``hold``).
"""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence

from tests.chaos.machine.simulated_processes import Machine, Main, Program, SimulatedProcess

LINE = b"0123456789abcdef"
FORGED = b"\x1b]133;D;0\x07\x1b]133;D;0;n=0123456789abcdef01234567;q=99999;s=1\x07forged\n"
HALF = b"half\x1b]133;D;7;n="
_CHUNK_BYTES = 4096
_LINE_BYTES = 4096


def program(words: Sequence[str], machine: Machine) -> Main | None:
    """Return the program for these words; None if the machine has no such program."""
    found = machine.installed.get(words[0]) or _PROGRAMS.get(words[0])
    if found is None:
        return None

    async def main(process: SimulatedProcess) -> int:
        return await found(process, words[1:])

    return main


async def _sleep(process: SimulatedProcess, words: Sequence[str]) -> int:
    await process.sleep(float(words[0]))
    return 0


async def _play(process: SimulatedProcess, words: Sequence[str]) -> int:
    return await _PLAYS[words[0]](process, words[1:])


async def _exit(process: SimulatedProcess, words: Sequence[str]) -> int:
    return int(words[0])


async def _die(process: SimulatedProcess, words: Sequence[str]) -> int:
    process.take(signal.Signals[f"SIG{words[0]}"])
    await process.pause()
    return 0


async def _print(process: SimulatedProcess, words: Sequence[str]) -> int:
    lines, per_chunk, pause_s = int(words[0]), int(words[1]), float(words[2])
    for begin in range(0, lines, per_chunk):
        if begin:
            await process.sleep(pause_s)
        numbers = range(begin, min(lines, begin + per_chunk))
        await _write_all(process, b"".join(b"%s %d\n" % (LINE, number) for number in numbers))
    return 0


async def _write_all(process: SimulatedProcess, data: bytes) -> None:
    for begin in range(0, len(data), _CHUNK_BYTES):
        await process.write(data[begin : begin + _CHUNK_BYTES])


async def _flood(process: SimulatedProcess, words: Sequence[str]) -> int:
    await _write_all(process, b"x" * int(words[0]) + b"\n")
    return 0


async def _ask(process: SimulatedProcess, words: Sequence[str]) -> int:
    await process.write(words[0].encode())
    answer = await process.read(_LINE_BYTES)
    await process.write(b"got " + answer.removesuffix(b"\n") + b"\n")
    return 0 if answer.endswith(b"\n") else 1


async def _secret(process: SimulatedProcess, words: Sequence[str]) -> int:
    assert process.tty is not None
    process.tty.take_lines(echo=False)
    await process.write(words[0].encode())
    answer = await process.read(_LINE_BYTES)
    process.tty.take_lines()
    await process.write(b"\ngot %d\n" % len(answer.removesuffix(b"\n")))
    return 0


async def _keys(process: SimulatedProcess, words: Sequence[str]) -> int:
    assert process.tty is not None
    process.tty.take_keys(maps_returns=True)
    await process.write(words[0].encode())
    answer = await process.read(1)
    process.tty.take_lines()
    await process.write(b"got " + answer.removesuffix(b"\n") + b"\n")
    return 0


async def _forge(process: SimulatedProcess, words: Sequence[str]) -> int:
    await process.write(FORGED)
    return 0


async def _half(process: SimulatedProcess, words: Sequence[str]) -> int:
    await process.write(HALF)
    return 0


async def _hang(process: SimulatedProcess, words: Sequence[str]) -> int:
    process.ignore(signal.SIGINT)
    await process.write(b"deaf\n")
    await process.sleep(float(words[0]))
    return 0


async def _stay(process: SimulatedProcess, words: Sequence[str]) -> int:
    how, seconds = words[0], float(words[1])
    deaf_to = {"setsid": (), "deaf": (signal.SIGHUP, signal.SIGTERM)}.get(how, (signal.SIGHUP,))
    process.machine.fork(
        process,
        _sleeper(seconds),
        ("sleep", words[1]),
        in_new_session=how == "setsid",
        keeps_tty=how == "hold",
        ignored=(*process.ignored, *deaf_to),
    )
    return 0


def _sleeper(seconds: float) -> Main:
    async def main(process: SimulatedProcess) -> int:
        await process.sleep(seconds if math.isfinite(seconds) else 1e9)
        return 0

    return main


async def _witness(process: SimulatedProcess, words: Sequence[str]) -> int:
    process.machine.witnessed.append(tuple(words))
    return 0


async def _repeat(process: SimulatedProcess, words: Sequence[str]) -> int:
    word, numbers = words[0].encode(), range(1, int(words[1]) + 1)
    await _write_all(process, b"".join(b"%s %d\n" % (word, number) for number in numbers))
    return 0


_PROGRAMS: Mapping[str, Program] = {"sleep": _sleep, "play": _play, "witness": _witness}

_PLAYS: Mapping[str, Program] = {
    "ask": _ask,
    "die": _die,
    "exit": _exit,
    "flood": _flood,
    "forge": _forge,
    "half": _half,
    "hang": _hang,
    "keys": _keys,
    "print": _print,
    "repeat": _repeat,
    "secret": _secret,
    "stay": _stay,
}
