"""``chaos``: tries whether the promises hold while everything goes wrong; needs no daemon."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from typing import Any

import click

from aegis.cli.show import duration, escaped_line, print_lines

DEFAULT_MINUTES = 1.0
SEEDS = click.IntRange(min=1)
INTERRUPTED = 130


@click.command()
@click.option("--seed", type=click.IntRange(min=0), help="The first seed; default: any.")
@click.option("--seeds", type=SEEDS, metavar="COUNT", help="Play so many; default: no limit.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Begin no seed later than so many minutes; default: 1, without limit if --seeds is given.",
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes; default: one a processor.")
@click.option("--real", is_flag=True, help="Kill real daemons instead, in a temporary directory.")
@click.option("--lives", type=SEEDS, metavar="COUNT", help="With --real: kill so many.")
def chaos(
    seed: int | None,
    seeds: int | None,
    minutes: float | None,
    jobs: int | None,
    real: bool,
    lives: int | None,
) -> int:
    """Play random histories of a simulated daemon, and check every promise.

    Each seed is a history of several clients, with faults: kills, losses of power, disks that
    fail, crashes of actors. It touches no daemon and no file of yours. Ends at the first promise
    that was broken, with the shortest script that breaks it. Exit code: 0 if all held, else 1.

    With --real: a daemon of its own, in a temporary directory, is killed under load at every fault
    point and, where strace may trace it, at every call of the disk; its next life goes on from
    there. What it has in the end is compared with what its clients were told.
    """
    if (seeds or jobs) if real else lives:
        raise click.UsageError("--lives goes with --real, --seeds and --jobs without it")
    if real:
        return _real(seed, lives, minutes)
    from aegis.chaos.running.progress import Progress
    from aegis.chaos.running.ring2 import Limits, Ring2

    first = secrets.randbelow(2**31) if seed is None else seed
    if minutes is None and seeds is None:
        minutes = DEFAULT_MINUTES
    limits = Limits(first=first, seeds=seeds, seconds=None if minutes is None else minutes * 60)
    ring = Ring2(limits, jobs or processors(), Progress(sys.stderr))
    print_lines(f"seeds from {first}")
    sys.stdout.flush()
    ring.run()
    for line in ring.failure():
        print_lines(escaped_line(line))
    return _closing(ring)


def _real(seed: int | None, lives: int | None, minutes: float | None) -> int:
    from aegis.chaos.running.progress import Progress
    from aegis.chaos.running.ring2 import Limits
    from aegis.chaos.running.ring3 import Ring3

    first = secrets.randbelow(2**31) if seed is None else seed
    if minutes is None and lives is None:
        minutes = DEFAULT_MINUTES
    limits = Limits(first=first, seeds=lives, seconds=None if minutes is None else minutes * 60)
    ring = Ring3(limits, Progress(sys.stderr))
    print_lines(f"seed {first}")
    if ring.untraced is not None:
        print_lines(f"no daemon is killed at a call: {escaped_line(ring.untraced)}")
    sys.stdout.flush()
    ring.run()
    for line in ring.failure():
        print_lines(escaped_line(line))
    how = ", interrupted" if ring.is_interrupted else ""
    print_lines(f"\nafter {duration(ring.seconds)}{how}:\n\n")
    print_lines(ring.table(shutil.get_terminal_size().columns))
    if ring.violations:
        return 1
    return INTERRUPTED if ring.is_interrupted else 0


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def _closing(ring: Any) -> int:
    from aegis.chaos.running.closing import closing_table

    how = ", interrupted" if ring.is_interrupted else ""
    print_lines(f"\nafter {duration(ring.seconds)}{how}:\n\n")
    print_lines(closing_table(ring.totals, shutil.get_terminal_size().columns))
    if ring.totals.violations:
        return 1
    return INTERRUPTED if ring.is_interrupted else 0
