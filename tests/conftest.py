"""How property tests run: without time limits, since a machine under load is not a bug.

The profile ``sim`` is for long runs with a seed of their own (``just properties``); the variable
says how many examples a test has in it that does not say so itself.

The tests that failed, each with the reason, are appended to the file that ``AEGIS_FAILED_TESTS``
names: ``.ci/run`` prints it at the end of its log.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.durations import Durations

OWN_REGISTRY = "AEGIS_TEST_REGISTRY"

if OWN_REGISTRY not in os.environ:
    # Not the user's registry of trusted states. The workers of one run share the one of the first.
    # A run that was killed leaves its own, with the pid in the name; the next run removes it.
    for _left in Path(tempfile.gettempdir()).glob("aegis-*-*-*"):
        _what, _pid = _left.name.split("-")[1:3]
        if _what in ("registry", "history") and not Path("/proc", _pid).exists():
            shutil.rmtree(_left, ignore_errors=True)
    os.environ[OWN_REGISTRY] = tempfile.mkdtemp(prefix=f"aegis-registry-{os.getpid()}-")
    atexit.register(shutil.rmtree, os.environ[OWN_REGISTRY], ignore_errors=True)
os.environ["XDG_STATE_HOME"] = os.environ[OWN_REGISTRY]

# Taken out of the environment: a pytest that a test runs has failures that are none of this run.
FAILED_TESTS = os.environ.pop("AEGIS_FAILED_TESTS", None)
REASON_LINES = 15

EXAMPLES = int(os.environ.get("AEGIS_SIM_EXAMPLES", "500"))

settings.register_profile("here", deadline=None)
settings.register_profile(
    "sim", deadline=None, derandomize=False, database=None, max_examples=EXAMPLES
)
settings.load_profile("here")

# Whoever started the tests may have had them ignore signals (nohup, a script's `&`): what they
# start would ignore them too.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the durations of the run in a file."""
    config.pluginmanager.register(Durations(config))


CLOCKS = {"autojump_clock", "mock_clock"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test that has the simulated clock through a fixture: it would run in real time."""
    # pytest-trio takes the clock from the arguments of the test alone.
    if isinstance(item, pytest.Function) and CLOCKS & set(item.fixturenames):
        arguments = inspect.signature(item.function).parameters
        if not CLOCKS & set(arguments):
            raise pytest.UsageError(f"{item.nodeid} must ask for its clock itself")


def pytest_xdist_auto_num_workers() -> int:
    """Return what ``-n auto`` means: most of the time a test waits for a shell."""
    return 3 * len(os.sched_getaffinity(0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Append each failed test, and the lines that say why, to the file of the failed tests."""
    if FAILED_TESTS is not None:
        reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
        with Path(FAILED_TESTS).open("a", encoding="utf-8", errors="backslashreplace") as file:
            for report in reports:
                lines = report.longreprtext.splitlines()
                # A worker that died and a traceback drawn by rich have no such lines.
                reason = [line for line in lines if line.startswith("E ")] or lines[-REASON_LINES:]
                file.writelines(f"{line}\n" for line in (report.nodeid, *reason[:REASON_LINES]))


def pytest_collection_finish() -> None:
    """Leave the collected tests out of each later garbage collection: they are many."""
    gc.collect()
    gc.freeze()
