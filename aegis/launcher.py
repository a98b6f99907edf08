"""Removal of the variables of ``uv run`` from the environment, so terminals do not inherit them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import PurePath

_OF_UV = ("UV", "UV_RUN_RECURSION_DEPTH")
_VENV = "VIRTUAL_ENV"


TELEGRAM_TOKEN = "AEGIS_TELEGRAM_TOKEN"  # noqa: S105 -- the name of a variable


def remove_launcher_variables() -> None:
    """Undo the changes of ``uv run`` to this process's environment."""
    users = without_launcher(os.environ, sys.prefix)
    for name in os.environ.keys() - users.keys():
        del os.environ[name]
    os.environ.update(users)


def take_telegram_token() -> str:
    """Return the token of the Telegram bot, removed from the environment that terminals inherit."""
    return os.environ.pop(TELEGRAM_TOKEN, "").strip()


def without_launcher(inherited: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return ``inherited`` as it was before ``uv run`` started a program of the venv ``prefix``.

    ``uv run`` activates that venv, so in each terminal ``python`` would be the daemon's own. A venv
    that the user activated stays. Pure.
    """
    if not (_OF_UV[1] in inherited and inherited.get(_VENV) == prefix):
        return dict(inherited)
    kept = {name: text for name, text in inherited.items() if name not in (*_OF_UV, _VENV)}
    if "PATH" in kept:
        directories = kept["PATH"].split(os.pathsep)
        if str(PurePath(prefix, "bin")) in directories:
            directories.remove(str(PurePath(prefix, "bin")))
        kept["PATH"] = os.pathsep.join(directories)
    return kept
