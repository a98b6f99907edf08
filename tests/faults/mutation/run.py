"""Breaks the promises on purpose, in a throw-away copy, and looks whether the harness notices.

    python -m tests.faults.mutation.run                      each promise of promises.py, broken
    python -m tests.faults.mutation.run --random 100 --seed 1    as many mutants drawn at random
    python -m tests.faults.mutation.run --only NAME          one of the promises

A row per mutant: what caught it, and when; a survivor is named with its place. Exit code 1 if one
of the promises survived. Sources that fail to import count as caught by the first test.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.faults.mutation.draw import Mutant, draw
from tests.faults.mutation.promises import PROMISES, Promise

ROOT = Path(__file__).resolve().parents[3]
DRAWN_FROM = (
    "aegis/journal",
    "aegis/inboxes",
    "aegis/terminals",
    "actors/supervisor.py",
    "actors/supervision.py",
    "actors/policy.py",
)
"""Where random mutants are made."""

HARNESS: tuple[tuple[str, ...], ...] = (
    ("tests/faults", "-m", "not slow"),
    ("tests/crash", "tests/e2e/test_crash_injection.py", "tests/e2e/test_syncs.py"),
)
"""What has to notice, the quick part first: arguments for pytest."""

LIMIT_S = 900.0
"""A part that lasts longer hangs: that is noticed too."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@attrs.frozen
class Verdict:
    """``caught_by`` is the first test that failed, or None for a survivor."""

    what: str
    caught_by: str | None
    seconds: float

    def line(self) -> str:
        """Its row of the table."""
        return f"{self.seconds:6.0f} s  {self.caught_by or 'SURVIVED':<70}  {self.what}"


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of what git tracks, with nothing of the original in it."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
        yield copy


def first_failure(copy: Path, arguments: Sequence[str]) -> str | None:
    """The first test that fails there; None if all pass. A hang is a failure."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "auto", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=variables, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"hang of {arguments[0]}"
    if done.returncode == 0:
        return None
    found = _FAILED.search(done.stdout)
    return found[1] if found else f"exit {done.returncode} of {arguments[0]}"


def judged(copy: Path, file: str, mutated: str, what: str) -> Verdict:
    """Whether the harness notices that ``file`` is now ``mutated``."""
    path = copy / file
    original = path.read_text()
    path.write_text(mutated)
    begin = time.monotonic()
    try:
        caught = next(filter(None, (first_failure(copy, part) for part in HARNESS)), None)
    finally:
        path.write_text(original)
    return Verdict(what, caught, time.monotonic() - begin)


def broken(copy: Path, promise: Promise) -> Verdict:
    """The verdict on one broken promise."""
    source = (ROOT / promise.file).read_text()
    return judged(copy, promise.file, promise.broken(source), f"{promise.name} ({promise.file})")


def mutated(copy: Path, mutant: Mutant) -> Verdict:
    """The verdict on one mutant."""
    source = (ROOT / mutant.file).read_text()
    return judged(copy, mutant.file, mutant.applied_to(source), str(mutant))


def sources() -> dict[str, str]:
    """The files that mutants are drawn from."""
    paths = [
        path
        for place in DRAWN_FROM
        for path in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
    ]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Break promises on purpose.")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="the promise of this name")
    return parser.parse_args()


def main() -> int:
    """Carry out the command line."""
    given = parse()
    survivors = 0
    with copied_tree() as copy:
        untouched = next(filter(None, (first_failure(copy, part) for part in HARNESS)), None)
        if untouched is not None:
            sys.stderr.write(f"the harness fails on the unbroken tree: {untouched}\n")
            return 2
        if given.random:
            chosen = draw(sources(), given.random, given.seed)
            verdicts = (mutated(copy, mutant) for mutant in chosen)
        else:
            names = given.only or list(PROMISES)
            verdicts = (broken(copy, PROMISES[name]) for name in names)
        for verdict in verdicts:
            print(verdict.line(), flush=True)  # noqa: T201
            survivors += verdict.caught_by is None
    print(f"{survivors} survived")  # noqa: T201
    return int(survivors > 0 and not given.random)


if __name__ == "__main__":
    sys.exit(main())
