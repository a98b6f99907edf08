"""What a terminal is made with: kept in its ``meta.json``, and where its files are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from aegis.path_text import text_of_path
from aegis.protocol.terminals import StandardError

META_VERSION = 1


@attrs.frozen(kw_only=True)
class TerminalSettings:
    """A terminal as it was spawned.

    ``life`` is new for every first spawn of a name, so that ids made from it never repeat after a
    purge. ``env`` is merged over the daemon's environment. ``root`` is the daemon's root directory.
    ``shell``, ``cwd`` and ``root`` are paths as text that UTF-8 can carry (``aegis.path_text``).
    ``stderr`` tells whether standard error of a submitted command comes apart.
    """

    name: str
    life: str
    shell: str
    cwd: str
    env: dict[str, str]
    cols: int
    rows: int
    started_at: str
    root: str
    stderr: StandardError = "merged"

    def meta(self) -> dict[str, object]:
        """What ``meta.json`` holds."""
        fields = attrs.asdict(self)
        fields["env"] = dict(self.env)
        del fields["root"]
        return {"version": META_VERSION, **fields}

    def cookie(self, shell: str) -> str:
        """The mark in the environment of every process of one shell: not a secret.

        ``shell`` is the name of that shell, never used again for another.
        """
        return f"{self.root}/{self.name}/{self.life}.{shell}"


def settings_from_meta(fields: Mapping[str, Any], root: str) -> TerminalSettings | None:
    """The settings that ``meta.json`` holds; None if it is no such file."""
    match fields:
        case {
            "name": str(name),
            "life": str(life),
            "shell": str(shell),
            "cwd": str(cwd),
            "env": dict(env),
            "cols": int(cols),
            "rows": int(rows),
            "started_at": str(started_at),
        } if life and all(type(each) is str for each in [*env, *env.values()]):
            return TerminalSettings(
                name=name,
                life=life,
                shell=text_of_path(shell),  # an older version kept lone surrogates
                cwd=text_of_path(cwd),
                env=env,
                cols=cols,
                rows=rows,
                started_at=started_at,
                root=root,
                stderr="separate" if fields.get("stderr") == "separate" else "merged",
            )
        case _:
            return None


@attrs.frozen
class TerminalFiles:
    """Where one terminal keeps what it keeps (``.aegis/state/terminals/<name>/``)."""

    directory: Path
    ledger: Path = attrs.field(init=False, eq=False, repr=False)
    """One line per finished command. One path, which its readers and its writer keep."""

    @ledger.default
    def _ledger(self) -> Path:
        return self.directory / "ledger.jsonl"

    @property
    def meta(self) -> Path:
        """Its settings."""
        return self.directory / "meta.json"

    @property
    def note(self) -> Path:
        """The command in flight."""
        return self.directory / "in_flight.json"

    @property
    def subscribers(self) -> Path:
        """Who subscribes, and what each was told."""
        return self.directory / "subscribers.json"

    @property
    def shell(self) -> Path:
        """The running shell, for whoever must end what is left of it."""
        return self.directory / "shell.json"
