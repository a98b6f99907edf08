"""A fuzz run guided by coverage: each target in a process of its own, one table at the end.

    python -m tests.fuzz.run [SECONDS]             all targets, SECONDS together (default 600)
    python -m tests.fuzz.run --only text 60        one of them
    python -m tests.fuzz.run --keep 600            what it found replaces the kept inputs

It begins with the kept inputs and pieces of the recordings. An input that breaks a target, takes
ten seconds or too much memory is written to ``.fuzz/<target>/``; once the fault is mended, it goes
into ``corpus/`` with ``--add FILE``. At the end what was found is repeated to a quarter of a
megabyte and to one: time has to grow as the bytes do.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attrs

from tests.fuzz.growth import MAX_RATIO, ratio
from tests.fuzz.store import keep, kept
from tests.recordings.corpus import recordings

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".fuzz"
TOKENS = Path(__file__).resolve().parent / "tokens.dict"
NAMES = ("marks", "boundaries", "text", "capture", "queries", "plain")
MAX_INPUT = 512
MEMORY_MB = 512
HANG_S = 10
GROWTH_SIZE = 262_144
GROWTH_UNITS = 8


@attrs.frozen
class Outcome:
    """What one target's run came to.

    ``edges``: branches of the code that were taken; ``features``: these with how often. ``broken``
    names the file with the input that broke it.
    """

    target: str
    executions: int
    seconds: int
    edges: int
    features: int
    memory_first_mb: int
    memory_last_mb: int
    found: int
    worst_ratio: float
    broken: str | None

    def line(self) -> str:
        """Its row of the table."""
        end = self.broken or "nothing broke"
        return (
            f"{self.target:<12}{self.executions:>11}{self.executions // max(self.seconds, 1):>9}"
            f"{self.edges:>7}{self.features:>10}{self.found:>8}"
            f"{self.memory_first_mb:>8}{self.memory_last_mb:>7}{self.worst_ratio:>8.1f}  {end}\n"
        )


HEADING = (
    f"{'target':<12}{'executions':>11}{'a second':>9}{'edges':>7}{'features':>10}{'corpus':>8}"
    f"{'MB from':>8}{'to':>7}{'x4':>8}  outcome\n"
)


def seed(target: str, directory: Path) -> None:
    """Fill ``directory`` with the kept inputs and with pieces of the recordings."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    pieces = [
        each.data[at : at + MAX_INPUT // 2]
        for each in recordings()
        for at in range(0, min(len(each.data), 16_384), MAX_INPUT // 2)
    ]
    for number, data in enumerate([*kept(target), *pieces]):
        (directory / f"seed-{number}").write_bytes(data)


def fuzz(target: str, seconds: int) -> Outcome:
    """Run ``target`` for so long in a process of its own, and look at what came of it."""
    directory, artifacts = WORK / f"{target}-corpus", WORK / target
    seed(target, directory)
    shutil.rmtree(artifacts, ignore_errors=True)
    artifacts.mkdir(parents=True)
    done = child(
        target,
        f"-max_total_time={seconds}",
        f"-max_len={MAX_INPUT}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={HANG_S}",
        f"-dict={TOKENS}",
        "-print_final_stats=1",
        str(directory),
    )
    (WORK / f"{target}.log").write_text(done.stderr)
    broken = next((str(path.relative_to(ROOT)) for path in artifacts.iterdir()), None)
    if broken is None and done.returncode != 0:
        broken = f"exit {done.returncode}, see .fuzz/{target}.log"
    found = [] if broken else merged(target, directory)
    return outcome(target, done.stderr, seconds, found, broken)


def child(target: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The fuzzer in a process of its own."""
    command = [sys.executable, "-m", "tests.fuzz.one", target]
    command += [f"-artifact_prefix={WORK / target}/", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")


def outcome(target: str, log: str, seconds: int, found: list[bytes], broken: str | None) -> Outcome:
    """Read libFuzzer's log, and try what was ``found`` for growth."""
    memory = [int(each) for each in re.findall(r"rss: (\d+)Mb", log)] or [0]
    edges = [int(each) for each in re.findall(r"\bcov: (\d+)", log)] or [0]
    features = [int(each) for each in re.findall(r"\bft: (\d+)", log)] or [0]
    executions = re.search(r"number_of_executed_units: (\d+)", log)
    return Outcome(
        target=target,
        executions=int(executions[1]) if executions else 0,
        seconds=seconds,
        edges=edges[-1],
        features=features[-1],
        memory_first_mb=memory[len(memory) // 4],
        memory_last_mb=memory[-1],
        found=len(found),
        worst_ratio=worst_growth(target, found),
        broken=broken,
    )


def merged(target: str, directory: Path) -> list[bytes]:
    """The fewest inputs of ``directory`` that reach all that it reaches."""
    small = WORK / f"{target}-small"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    child(target, "-merge=1", str(small), str(directory))
    return [path.read_bytes() for path in small.iterdir()]


def worst_growth(target: str, inputs: list[bytes]) -> float:
    """The worst ratio among the shortest inputs, cut finely and not."""
    short = sorted(inputs, key=len)[:GROWTH_UNITS]
    return max(
        (ratio(target, each, GROWTH_SIZE, step) for each in short for step in (61, 16_384)),
        default=0.0,
    )


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Fuzz what reads the bytes of a terminal.")
    parser.add_argument("seconds", nargs="?", type=int, default=600)
    parser.add_argument("--only", choices=NAMES, action="append")
    parser.add_argument("--keep", action="store_true", help="keep what is found in corpus/")
    parser.add_argument("--add", nargs=2, metavar=("TARGET", "FILE"), help="keep one more input")
    return parser.parse_args()


def main() -> int:
    """Carry out the command line; 1 if anything broke or grew too fast."""
    given = parse()
    if given.add:
        target, file = given.add
        keep(target, [*kept(target), Path(file).read_bytes()])
        return 0
    names = given.only or list(NAMES)
    WORK.mkdir(exist_ok=True)
    outcomes = [fuzz(name, max(1, given.seconds // len(names))) for name in names]
    sys.stdout.write(HEADING + "".join(each.line() for each in outcomes))
    if given.keep:
        for name in names:
            small = [path.read_bytes() for path in (WORK / f"{name}-small").iterdir()]
            keep(name, small)
    return int(any(each.broken or each.worst_ratio > MAX_RATIO for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
