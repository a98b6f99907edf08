"""This program from outside: the word that starts it, another process of it, its service manager.

Imports little: everyday commands load this module for the word in their hints.
"""

from __future__ import annotations

import os
import sys

PROGRAM = "aegis-actors"


def notify_service_manager(address: str) -> None:
    """Report to systemd, at the socket ``address``, that this service is ready (sd_notify(3))."""
    import contextlib
    import socket

    path = f"\0{address[1:]}" if address.startswith("@") else address
    # A service manager that is gone must not end the daemon.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)
        sending.connect(path)
        sending.send(b"READY=1")


def start_again(*words: str) -> None:
    """Start this program with ``words`` in a session of its own, which is not this one's child."""
    import subprocess

    subprocess.run(
        ["setsid", "--fork", own_program(), *words], stdin=subprocess.DEVNULL, check=False
    )


def own_program() -> str:
    """Return the program to execute for another process of this one."""
    return _own_path() or PROGRAM


def program_word() -> str:
    """Return the word that starts this program in the shell that it was started from.

    ``aegis-actors`` if that is this program there, else its path, quoted. ``uv run`` puts its venv
    on the path of the program, but not on the path of the shell.
    """
    own = _own_path()
    if own is None:
        return PROGRAM
    directories = os.environ.get("PATH", "").split(os.pathsep)
    of_uv_run = f"{sys.prefix}/bin"
    if "UV_RUN_RECURSION_DEPTH" in os.environ and of_uv_run in directories:
        directories.remove(of_uv_run)
    for directory in directories:
        found = f"{directory or '.'}/{PROGRAM}"
        if os.path.isfile(found) and os.access(found, os.X_OK):  # noqa: PTH113
            if os.path.realpath(found) == os.path.realpath(own):
                return PROGRAM
            break
    from aegis.path_text import shell_word

    return shell_word(own)


def _own_path() -> str | None:
    """Return the absolute path of the script that was started; None if it was no script of ours."""
    script = sys.argv[0] if sys.argv else ""
    if os.path.basename(script) != PROGRAM:  # noqa: PTH119 -- pathlib is slow to import
        return None
    path = os.path.abspath(script)  # noqa: PTH100
    return path if os.access(path, os.X_OK) else None
