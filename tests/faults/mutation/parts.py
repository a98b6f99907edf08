"""The checks that must notice a mutant, by cost: the rings, and the ordinary tests. Pure.

Not the tests of this directory, nor those that break promises in memory: they look at the text of
the source, or at the harness, and would notice every mutant for no good reason.
"""

from __future__ import annotations

import re
import sys
from pathlib import PurePosixPath

import attrs

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::[^\s\[]+(?:\[.*?\])?|.+?)(?: - .*)?$", re.MULTILINE)
"""The parameters of a test, in brackets, may be any text."""


@attrs.frozen
class Part:
    """A command that fails if it notices a mutant.

    ``is_real``: it has real processes and the real clock, so that only a repeated failure counts.
    """

    name: str
    words: tuple[str, ...]
    is_real: bool = False

    @property
    def is_ring(self) -> bool:
        """Return whether it is one of the rings, not of the ordinary tests."""
        return self.name.startswith("ring")

    @property
    def measured(self) -> Part:
        """Return the part with a report of the lines that it ran: see ``reached``."""
        python, option, module, *arguments = self.words
        words = (python, option, "tests.faults.mutation.reached", module, *arguments)
        return attrs.evolve(self, words=words)

    def again(self, failure: str) -> Part:
        """Return the part with only the test that failed."""
        return attrs.evolve(self, words=_pytest(failure)) if "::" in failure else self


def _pytest(*arguments: str) -> tuple[str, ...]:
    options = ("-q", "-x", "-n", "0", "--durations=0", "--durations-min=5")
    return (sys.executable, "-m", "pytest", *options, *arguments)


RINGS = (
    Part("ring 2", (sys.executable, "-m", "tests.faults.mutation.histories")),
    Part(
        "ring 1",
        _pytest(
            "tests/faults/test_exhaustive.py",
            "tests/faults/test_terminals.py",
            "tests/faults/test_limits.py",
            "-k",
            "not broken_on_purpose",
        ),
    ),
    Part(
        "ring 3",
        _pytest(
            "tests/e2e/test_syncs.py",
            "tests/crash/test_one_kill.py",
            "tests/crash/test_failing_disk.py",
            "tests/e2e/test_crash_injection.py",
            "tests/e2e/test_process.py",
            "tests/e2e/test_traps_detached.py",
            "tests/e2e/test_earlier_lives.py",
            "tests/crash/test_kills.py",
        ),
        is_real=True,
    ),
    Part("ring 4", _pytest("tests/resources"), is_real=True),
)
"""The rings in the order of their cost."""


def _own_tests(file: str) -> str:
    """Return the directories of the tests of ``file``, if it has tests of its own."""
    path = PurePosixPath(file)
    return str(PurePosixPath("tests", path.parent, f"test_{path.name}"))


def ordinary(file: str) -> tuple[Part, ...]:
    """Return the ordinary tests of the package of ``file``, its own before the others."""
    package, *inside = PurePosixPath(file).parts
    own = [f"test_{name}" if name.endswith(".py") else name for name in inside[:1]]
    tests = str(PurePosixPath("tests", package, *(own if package == "aegis" else [])))
    options = ("-p", "tests.faults.mutation.first", "--first", _own_tests(file))
    quick = _pytest(*options, tests, "-m", "not real")
    real = _pytest(*options, tests, "-m", "real")
    return (
        Part(f"ordinary: {tests}", quick),
        Part(f"ordinary, real: {tests}", real, is_real=True),
    )


OUTSIDE = Part("ordinary, real: tests/e2e", _pytest("tests/e2e"), is_real=True)
"""The tests from outside, for mutants that nothing else has noticed."""


def first_failure(output: str) -> str | None:
    """Return the broken rule, or the first failed test, from the output of a part."""
    found = _FAILED.search(output)
    return None if found is None else found[1]
