"""The fuzzer of one target, in a process of its own: ``python -m tests.fuzz.one TARGET ...``.

What follows the target is libFuzzer's, which ends the process. Nothing that is fuzzed may be
imported before it is instrumented.
"""

from __future__ import annotations

import importlib
import shlex
import sys


def main(target: str, arguments: list[str]) -> None:
    """Instrument the target and what it tests, and fuzz."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["aegis.terminals", "tests.fuzz.targets"]):
        targets = importlib.import_module("tests.fuzz.targets")
    # A merge starts itself anew, through a shell, by what it takes for its own name.
    itself = shlex.join([sys.executable, "-m", "tests.fuzz.one", target])
    atheris.Setup([itself, *arguments], targets.TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
