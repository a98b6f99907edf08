"""Stand-ins for agent programs: the standard library only, and a fast start.

main.py claude             Claude Code's stream-json, scripted by its prompts
main.py claude … manual    its own interface, with an order per line
main.py acp                an ACP agent, scripted by its prompts
main.py --session=ID …     the own interface of another agent, and so does main.py resume … ID
main.py play RECORDING     play recorded frames of either protocol
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.abspath(f"{__file__}/../../../.."))

from tests.fakes.agents.wire import Wire


def main() -> None:
    """Run the stand-in that the first argument names."""
    # Imported when used: the start of a stand-in is part of what is measured.
    if sys.argv[1] == "acp":
        from tests.fakes.agents.acp import Acp

        Acp(Wire()).run()
    elif sys.argv[1] == "resume" or sys.argv[1].startswith("--"):
        from tests.fakes.agents.others import run as run_other

        sys.exit(run_other())
    elif sys.argv[1] == "play":
        from tests.fakes.agents.playing import play

        play(sys.argv[2], Wire())
    elif "manual" in sys.argv:
        from tests.fakes.agents.persons import run

        sys.exit(run())
    else:
        from tests.fakes.agents.claude import Claude, log_in, refuse_as_older

        log_in(sys.argv)
        refuse_as_older(sys.argv)
        Claude(Wire()).run()


if __name__ == "__main__":
    main()
