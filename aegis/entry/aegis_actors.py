"""The entry of the installed program, outside of our packages: nobody else has a module so named.

A person's ``PYTHONPATH`` comes before all installed packages, so a directory ``actors`` or a file
``attr.py`` of theirs would be imported in place of ours. ``PYTHONWARNINGS=error``,
``PYTHONOPTIMIZE`` and ``PYTHONINSPECT`` end the program or change what it does. It runs without
them (``python -E``), and leaves them in the environment for shells and plugins.
"""

from __future__ import annotations

import os
import sys

# A type checker takes this for true; typing takes longer to import than this file.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn

CHANGING = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONOPTIMIZE", "PYTHONWARNINGS"),
    *("PYTHONINSPECT", "PYTHONDEVMODE"),
)
"""The variables of Python with which our code is another, or does other things."""


def main() -> NoReturn:
    """Run ``aegis-actors``."""
    if not sys.flags.ignore_environment and any(map(os.environ.get, CHANGING)):
        # Once more, and not only without their entries in sys.path: what was imported since the
        # start of the interpreter may be theirs already.
        words = [sys.executable, *_options(), *sys.orig_argv[1:]]
        os.execv(sys.executable, words)  # noqa: S606 -- this program
    if not sys.flags.safe_path:
        # The directory of this program, as ~/.local/bin, or the current one: of modules of theirs.
        del sys.path[0]
    from aegis.cli.main import main as run

    run()


def _options() -> list[str]:
    """Return the options of an interpreter that ignores the environment, but harmless wishes."""
    options = ["-E", "-P"]
    if sys.flags.dont_write_bytecode:
        options.append("-B")
    if os.environ.get("PYTHONUNBUFFERED"):
        options.append("-u")
    if sys.pycache_prefix is not None:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return options


if __name__ == "__main__":
    main()
