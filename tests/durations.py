"""Durations of a test run, kept as one file per run in ``.durations/``.

Each line has the seconds of a test (its fixtures included), the CPU seconds of the worker and of
the processes that it waited for, the outcome, and the test. A fixture that several tests share is
counted for the test that builds it and for the test that ends it.

``python -m tests.durations`` prints the slowest tests of the last run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

DIRECTORY = Path(__file__).resolve().parents[1] / ".durations"

CPU = "cpu"
"""The property of a report with the CPU seconds of a test's phase."""

KEPT_RUNS = 50
SLOWEST = 10


class Timed(NamedTuple):
    """One test of a run."""

    seconds: float
    cpu: float
    outcome: str
    test: str

    def line(self) -> str:
        return f"{self.seconds:.3f}\t{self.cpu:.2f}\t{self.outcome}\t{self.test}"


class Durations:
    """The plugin: workers measure, the process that they report to writes the file."""

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker = hasattr(config, "workerinput")
        self._began = time.localtime()
        self._cpu = cpu_seconds()
        self._tests: dict[str, Timed] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = cpu_seconds()
        report.user_properties.append((CPU, now - self._cpu))
        self._cpu = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker:
            return
        before = self._tests.get(report.nodeid, Timed(0, 0, "passed", report.nodeid))
        measured = dict(report.user_properties).get(CPU, 0.0)
        assert isinstance(measured, float)
        self._tests[report.nodeid] = before._replace(
            seconds=before.seconds + report.duration,
            cpu=before.cpu + measured,
            outcome=before.outcome if report.passed else report.outcome,
        )

    def pytest_sessionfinish(self) -> None:
        if not self._is_worker and self._tests:
            with contextlib.suppress(OSError):  # a checkout that may only be read
                self._write()

    def _write(self) -> None:
        DIRECTORY.mkdir(exist_ok=True)
        name = f"{time.strftime('%Y-%m-%dT%H-%M-%S', self._began)}-{os.getpid()}.tsv"
        slowest_first = sorted(self._tests.values(), reverse=True)
        (DIRECTORY / name).write_text("".join(f"{each.line()}\n" for each in slowest_first))
        for old in runs()[:-KEPT_RUNS]:
            old.unlink(missing_ok=True)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended, in seconds."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def runs() -> list[Path]:
    """Return the files of the runs, the newest last."""
    return sorted(DIRECTORY.glob("*.tsv"))


def read_run(path: Path) -> list[Timed]:
    """Return the tests of a run, the slowest first."""
    tests = []
    for line in path.read_text().splitlines():
        seconds, cpu, outcome, test = line.split("\t", 3)
        tests.append(Timed(float(seconds), float(cpu), outcome, test))
    return tests


def main() -> None:
    """Print the slowest tests of the last run, or of the given file."""
    parser = argparse.ArgumentParser(prog="tests.durations", description=main.__doc__)
    parser.add_argument("run", nargs="?", type=Path, help="a file of .durations/")
    parser.add_argument("--count", type=int, default=SLOWEST)
    asked = parser.parse_args()
    paths = [asked.run] if asked.run else runs()
    if not paths:
        parser.exit(1, f"no run was written to {DIRECTORY}; run pytest first\n")
    path = paths[-1]
    tests = read_run(path)
    in_all = f"{sum(each.seconds for each in tests):.0f} s, {sum(each.cpu for each in tests):.0f} s"
    print(f"{path.name}: {len(tests)} tests, {in_all} of CPU")  # noqa: T201
    for each in tests[: asked.count]:
        print(f"{each.seconds:8.2f} s {each.cpu:7.2f} s of CPU  {each.test}")  # noqa: T201


if __name__ == "__main__":
    main()
