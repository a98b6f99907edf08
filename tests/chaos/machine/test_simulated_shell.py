"""The simulated bash beside a real one with the real hook: the same marks, outputs and exits."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from aegis.terminals.hooks.submission import PROBE_KEY
from tests.chaos.scripts import (
    Begun,
    Drop,
    Exit,
    Keys,
    Prompt,
    Run,
    Step,
    Submit,
    Until,
    cuts_of,
    play_real,
    play_simulated,
)

SLEEPING = "play print 2 1 60"
"""A command that prints ``0`` once it is in the foreground, and sleeps."""

ASKING = "play ask 'name? '"

TYPING_S = 4
"""Seconds for which a real command runs while keys are typed, also on a busy machine."""

LONG = ("Ctrl-C that is ignored", "typed ahead")
"""The scripts that take them."""

SCRIPTS: dict[str, list[Step]] = {
    "a command": [Run("echo hi")],
    "exit codes": [Run("play exit 3"), Run("false"), Run("true"), Run("play exit 255")],
    "nothing runs": [Run("false"), Run(""), Run("# a comment"), Run("   ")],
    "several lines": [Run("false\ntrue\nplay exit 3"), Run("echo a; echo b\n\necho c\n")],
    "lists": [Run("false && echo no; true && echo yes"), Run("false || echo or; true || echo no")],
    "a list over lines": [Run("true &&\necho on"), Run("false ||\n\necho or")],
    "quotes": [Run("echo 'a;  b' 'c'd"), Run("echo 'over\nlines'"), Run("echo it '' is")],
    "what no shell can read": [Run("echo a)"), Run("; echo"), Run("echo a\n)\necho b")],
    "no such program": [Run("no-such-program x"), Run("echo on")],
    "deaths": [Run(f"play die {name}") for name in ("KILL", "TERM", "HUP", "USR1", "PIPE", "INT")],
    "a death ends no list": [Run("play die TERM; echo on"), Run("play die KILL\necho on")],
    "chunks": [Run("play print 40 7 0.01")],
    "a flood": [Run("play flood 300000"), Run("echo on")],
    "forged marks": [Run("play forge"), Run("echo on")],
    "half a mark": [Run("play half"), Run("echo on")],
    "variables": [Run("echo $HERE @$HERE.1@ a$HERE")],
    "directories": [Run("cd /tmp"), Run("cd /no/such"), Run("cd /")],
    "a command that asks": [
        *(Submit(ASKING), Begun(), Until(b"name? "), Keys(b"bob\r"), Prompt()),
        *(Submit(ASKING), Begun(), Until(b"name? "), Keys(b"a\x7fbob\x15tim\r"), Prompt()),
        *(Submit(ASKING), Begun(), Until(b"name? "), Keys(b"\x04"), Prompt()),
    ],
    "a secret": [Submit("play secret 'key: '"), Begun(), Until(b"key: "), Keys(b"abc\r"), Prompt()],
    "single keys": [Submit("play keys 'key? '"), Begun(), Until(b"key? "), Keys(b"q"), Prompt()],
    "Ctrl-C": [
        *(Submit(f"echo a; {SLEEPING}; echo b"), Until(b" 0\r\n"), Keys(b"\x03"), Prompt()),
        Run("echo on"),
    ],
    "Ctrl-C in several lines": [
        *(Submit(f"echo a\n{SLEEPING}\necho b"), Until(b" 0\r\n"), Keys(b"\x03"), Prompt()),
        Run("echo on"),
    ],
    "Ctrl-C at a question": [
        *(Submit(ASKING), Begun(), Until(b"name? "), Keys(b"bo"), Until(b"bo"), Keys(b"\x03")),
        *(Prompt(), Run("echo on")),
    ],
    "Ctrl-C that is ignored": [
        *(Submit(f"play hang {TYPING_S}; echo b"), Begun(), Until(b"deaf\r\n"), Keys(b"\x03")),
        *(Until(b"^C"), Prompt()),
    ],
    "a typed command": [
        *(Keys(b"echo typed\r"), Prompt(), Keys(b"play exit 4\r"), Prompt()),
        *(Keys(b"\r"), Prompt(), Run("echo on"), Keys(b"true\r"), Prompt()),
    ],
    "a half typed line": [
        *(Keys(b"half"), Until(b"half"), Keys(PROBE_KEY), Until(b"half")),
        *(Keys(b"\x15"), Keys(PROBE_KEY), Run("echo on")),
    ],
    "a submission over a typed line": [Keys(b"half"), Until(b"half"), Run("echo on")],
    "a typed line that is dropped": [Keys(b"half"), Until(b"half"), Drop()],
    "typed ahead": [
        *(Submit(f"echo a; sleep {TYPING_S}"), Until(b"a\r\n"), Keys(b"echo ahead\r")),
        *(Until(b"echo ahead"), Prompt(), Prompt()),
    ],
    "a command line in two halves": [
        *(Keys(b"echo 'a\r"), Until(b"> "), Keys(b"b'\r"), Prompt(), Run("echo on")),
    ],
    "stopped": [
        *(Submit(f"echo a; {SLEEPING}; echo b"), Until(b" 0\r\n"), Keys(b"\x1a"), Prompt()),
        *(Run("echo on"), Run("exit"), Submit("exit 5"), Exit()),
    ],
    "left": [Run("play exit 3"), Submit("exit"), Exit()],
    "left with a code": [Submit("echo a; exit 7; echo b"), Begun(), Exit()],
    "left by Ctrl-D": [Run("play exit 3"), Keys(b"\x04"), Exit()],
    "killed by itself": [Submit("kill -s KILL $$"), Begun(), Exit()],
    "hung up by itself": [Submit("kill -s HUP $$"), Begun(), Exit()],
    "deaf to TERM": [Run("kill -s TERM $$"), Run("echo on")],
    "a child that stays": [
        Run(f"play stay {how} 60") for how in ("nohup", "setsid", "deaf", "hold")
    ],
}


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in SCRIPTS],
)
def test_a_script_does_what_it_does_in_a_real_bash(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    real = play_real(tmp_path / "real", script)
    for seed in range(5):
        assert play_simulated(tmp_path / f"{seed}", script, seed=seed) == real, f"seed {seed}"


def some_text(chance: Random) -> str:
    """Return a text of one to four lines of one to three commands."""
    lines = []
    for _ in range(chance.randint(1, 4)):
        commands = [chance.choice(COMMANDS) for _ in range(chance.randint(1, 3))]
        line = commands[0]
        for command in commands[1:]:
            line += chance.choice(["; ", " && ", " || ", ";"]) + command
        lines.append(line + chance.choice(["", "", " ", "  # the rest"]))
    return "\n".join(lines)


COMMANDS = [
    "true",
    "false",
    ":",
    "echo one two",
    "echo 'a  b'",
    "echo 'over\n lines'",
    "cd /tmp",
    "play exit 3",
    "play die TERM",
    "play print 3 1 0",
    "play repeat word 3",
    "play forge",
    "play half",
    "no-such-program",
    "sleep 0",
]


@pytest.mark.real
@pytest.mark.parametrize("number", range(6))
def test_whatever_the_text_it_does_what_it_does_in_a_real_bash(number: int, tmp_path: Path) -> None:
    chance = Random(f"texts/{number}")
    script = [Run(some_text(chance)) for _ in range(12)]
    real = play_real(tmp_path / "real", script)
    assert play_simulated(tmp_path / "simulated", script, seed=number) == real, script


def test_one_seed_gives_one_course_and_another_one_another(tmp_path: Path) -> None:
    script = [Run("play print 40 7 0.01"), Run("play flood 100000"), Run("play stay nohup 5")]
    first, again, other = (
        cuts_of(tmp_path / name, script, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again
    assert first != other
