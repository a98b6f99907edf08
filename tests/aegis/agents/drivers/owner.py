"""A process that owns a driver of a stand-in, to be killed by a test.

    owner.py DIRECTORY COOKIE PROMPT

It writes each text of the agent to standard output, a line for each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from tests.aegis.agents.drivers.driving import driven, plan_for


async def main(directory: str, cookie: str, prompt: str) -> None:
    """Send the prompt, show the texts, and wait."""
    async with driven(plan_for(Path(directory), cookie=cookie)) as it:
        await it.turn(prompt)
        shown = 0
        while True:
            expected = shown + 1
            await it.log.until(lambda: len(it.log.texts) >= expected)  # noqa: B023
            sys.stdout.write(f"{it.log.texts[shown]}\n")
            sys.stdout.flush()
            shown = expected


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
