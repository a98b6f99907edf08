"""Stand-ins for agent programs: the standard library only, and a fast start.

main.py claude             Claude Code's stream-json, scripted by its prompts
main.py acp                an ACP agent, scripted by its prompts
main.py play RECORDING     play recorded frames of either protocol
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.abspath(f"{__file__}/../../../.."))

from tests.fakes.agents.claude import Claude
from tests.fakes.agents.wire import Wire


def main() -> None:
    """Run the stand-in that the first argument names."""
    Claude(Wire()).run()


if __name__ == "__main__":
    main()
