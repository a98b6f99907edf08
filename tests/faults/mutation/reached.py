"""Which lines of the program a part runs: a mutant in any other line need not be tried with it.

    python -m tests.faults.mutation.reached MODULE ARGUMENTS...    as python -m MODULE ARGUMENTS...

It is for what happens in one process. The last line that it prints is for ``reached_lines``.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[3]

_PREFIX = "REACHED "


def run_module(name: str, arguments: Sequence[str]) -> tuple[int, Mapping[str, list[int]]]:
    """Run a module as a program; return its exit code, and the lines that it ran, by file."""
    measured = coverage.Coverage(
        data_file=None, include=[str(ROOT / "actors/*"), str(ROOT / "aegis/*")], config_file=False
    )
    sys.argv[1:] = arguments
    code: object = 0
    with measured.collect():
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        except SystemExit as exit_:
            code = exit_.code
    data = measured.get_data()
    files = {str(Path(file).relative_to(ROOT)): data.lines(file) for file in data.measured_files()}
    return int(code != 0), {file: sorted(lines or []) for file, lines in files.items()}


def reached_lines(output: str) -> dict[str, list[int]]:
    """Return the lines by file, from the last line of its output."""
    last = output.rstrip("\n").rpartition("\n")[2]
    reached = json.loads(last.removeprefix(_PREFIX)) if last.startswith(_PREFIX) else {}
    return {str(file): [int(line) for line in lines] for file, lines in reached.items()}


def main() -> int:
    """Run the command line."""
    code, lines = run_module(sys.argv[1], sys.argv[2:])
    print(_PREFIX + json.dumps(lines))  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
