"""The command behind ``just chaos``: histories on a simulated machine, or real daemons killed."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable
from typing import Protocol

import click

from aegis.cli.grammar.click_commands import DecimalRange, WholeRange
from aegis.cli.printing.formatting import duration, escaped_line, print_lines

DEFAULT_MINUTES = 1.0
MOST_JOBS = 256
FAILED, INTERRUPTED = 1, 130

_COUNT = WholeRange(min=1)


class Ring(Protocol):
    """A run of seeds or of kills."""

    is_interrupted: bool

    @property
    def seconds(self) -> float:
        """Return how long the run has taken so far."""

    @property
    def is_broken(self) -> bool: ...

    def run(self) -> None:
        """Run until a limit, a broken promise or Ctrl-C."""

    def failure(self) -> Iterable[str]:
        """Return the report of the broken promise, by line."""

    def table(self, columns: int) -> str:
        """Return the table of attempts, faults and promises."""


@click.command()
@click.option("--seed", type=WholeRange(min=0), help="The first seed; default: any.")
@click.option("--seeds", type=_COUNT, metavar="COUNT", help="Play so many seeds.")
@click.option(
    "--minutes",
    type=DecimalRange(min=0, min_open=True),
    help="Begin nothing later than so many minutes; default: 1, if no number is given.",
)
@click.option("--jobs", type=WholeRange(1, MOST_JOBS), help="Processes; default: one a processor.")
@click.option("--real", is_flag=True, help="Kill real daemons in a temporary directory instead.")
@click.option("--lives", type=_COUNT, metavar="COUNT", help="With --real: so many lives.")
@click.option("--agents", is_flag=True, help="With --real: kill agents and their guards, too.")
@click.option("--kills", type=_COUNT, metavar="COUNT", help="With --agents: so many kills.")
def chaos(
    seed: int | None,
    seeds: int | None,
    minutes: float | None,
    jobs: int | None,
    real: bool,
    lives: int | None,
    agents: bool,
    kills: int | None,
) -> None:
    """Try whether every promise holds while things go wrong.

    Plays random histories of a simulated daemon, one a seed: several clients, and faults such as
    kills, losses of power, disks that fail, crashes of actors. It touches no daemon and no file of
    yours. Ends at the first promise that was broken, with the shortest script that breaks it. Exit
    code: 0 if all held, else 1.

    With --real: a daemon of its own, in a temporary directory, is killed under load at every fault
    point and, where strace may trace it, at every call of the disk; then it is started again.
    Its final state is compared with the replies that its clients got. With --agents, the daemon has
    agent sessions; the processes of agents and their guards are killed as well.
    """
    if real and (seeds is not None or jobs is not None):
        raise click.UsageError("--seeds and --jobs are for simulated histories, not for --real")
    if lives is not None and not real:
        raise click.UsageError("--lives is for --real")
    if (agents and not real) or (kills is not None and not agents):
        raise click.UsageError("--agents is for --real, and --kills for --agents")
    if agents and lives is not None:
        raise click.UsageError("--lives is for --real without --agents; give --kills")
    first = secrets.randbelow(2**31) if seed is None else seed
    if minutes is None and seeds is None and lives is None and kills is None:
        minutes = DEFAULT_MINUTES
    if agents:
        ring = _killed_agents(first, kills, minutes)
    elif real:
        ring = _killed_daemons(first, lives, minutes)
    else:
        ring = _histories(first, seeds, minutes, jobs)
    print_lines(f"seed {first}" if real else f"seeds from {first}")
    sys.stdout.flush()
    ring.run()
    for line in ring.failure():
        print_lines(escaped_line(line))
    click.get_current_context().exit(_close(ring))


def _histories(first: int, seeds: int | None, minutes: float | None, jobs: int | None) -> Ring:
    from tests.chaos.running.progress import Progress
    from tests.chaos.running.ring2 import Limits, Ring2

    seconds = None if minutes is None else minutes * 60
    limits = Limits(first=first, seeds=seeds, seconds=seconds)
    return Ring2(limits, jobs or processors(), Progress(sys.stderr))


def _killed_daemons(seed: int, lives: int | None, minutes: float | None) -> Ring:
    from tests.chaos.running.progress import Progress
    from tests.chaos.running.ring2 import Limits
    from tests.chaos.running.ring3 import Ring3

    limits = Limits(first=seed, seeds=lives, seconds=None if minutes is None else minutes * 60)
    return Ring3(limits, Progress(sys.stderr))


def _killed_agents(seed: int, kills: int | None, minutes: float | None) -> Ring:
    from tests.chaos.running.progress import Progress
    from tests.chaos.running.ring2 import Limits
    from tests.chaos.running.ring3 import AgentRing

    limits = Limits(first=seed, seeds=kills, seconds=None if minutes is None else minutes * 60)
    return AgentRing(limits, Progress(sys.stderr))


def processors() -> int:
    """Return the number of processors that this process may use."""
    return min(MOST_JOBS, len(os.sched_getaffinity(0)))


def _close(ring: Ring) -> int:
    how = ", interrupted" if ring.is_interrupted else ""
    print_lines(f"\nafter {duration(ring.seconds)}{how}:\n\n")
    print_lines(ring.table(shutil.get_terminal_size().columns))
    if ring.is_broken:
        return FAILED
    return INTERRUPTED if ring.is_interrupted else 0


if __name__ == "__main__":
    chaos(prog_name="just chaos")
