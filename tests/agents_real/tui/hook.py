"""The hook command of Claude Code: ``hook.py FILE`` adds the event on standard input, with a time.

It runs outside the checkout's environment: the standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    """Add one line; the clock is the same in all processes of the machine."""
    line = {"at": time.monotonic(), "event": json.load(sys.stdin)}
    with Path(sys.argv[1]).open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
