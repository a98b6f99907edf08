"""The settings of a terminal, stored in ``meta.json``, and the paths of its files. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from aegis.path_text import path_after_moves, path_of_stored, stored_path, text_of_path
from aegis.processes.environment import withhold_keys
from aegis.protocol.terminals import StandardError

META_VERSION = 1


@attrs.frozen(kw_only=True)
class TerminalSettings:
    """The settings with which a terminal was spawned.

    ``life`` is a new id for every first spawn of a name, so ids derived from it never repeat after
    a purge. ``env`` is merged over the daemon's environment. ``root`` is the daemon's root
    directory. ``shell``, ``cwd`` and ``root`` are paths as valid UTF-8 text (``aegis.path_text``).
    ``stderr``: whether the standard error of a submitted command is captured separately.
    ``opener`` is the tag of the caller who spawned it, as a record has the tag of a writer.
    ``notice`` is a sentence about this start, not stored: which directory was gone.
    ``withheld`` are the variables of the daemon's environment that its shells do not get.
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
    opener: str = "human"
    notice: str | None = None
    withheld: tuple[str, ...] = ()

    def meta(self) -> dict[str, object]:
        """Return the content of ``meta.json``, with ``cwd`` as ``place``, relative to the root."""
        fields = attrs.asdict(self)
        fields["env"] = dict(self.env)
        fields["place"] = stored_path(fields.pop("cwd"), fields.pop("root"))
        del fields["notice"]
        return {"version": META_VERSION, **fields}

    def cookie(self, shell: str) -> str:
        """Return the mark in the environment of every process of one shell; it is not a secret.

        ``shell`` is the unique name of the shell.
        """
        return f"{self.root}/{self.name}/{self.life}.{shell}"


def stored_directory(
    fields: Mapping[str, Any], root: str, earlier: tuple[str, ...] = ()
) -> str | None:
    """Return the directory that a terminal's file names; None if it names none.

    It is ``place``, relative to the root if it is below it; of an older version the absolute
    ``cwd``, below ``root`` or one of the ``earlier`` paths of the root.
    """
    match fields:
        case {"place": str(place)}:
            return path_of_stored(place, root)
        case {"cwd": str(cwd)}:  # some versions kept lone surrogates
            return path_after_moves(text_of_path(cwd), root, earlier)
        case _:
            return None


def settings_from_meta(
    fields: Mapping[str, Any], root: str, earlier: tuple[str, ...] = ()
) -> TerminalSettings | None:
    """Return the settings from the content of ``meta.json``; None if it is invalid.

    ``earlier`` are the earlier paths of the root.
    """
    cwd = stored_directory(fields, root, earlier)
    match fields:
        case {
            "name": str(name),
            "life": str(life),
            "shell": str(shell),
            "env": dict(env),
            "cols": int(cols),
            "rows": int(rows),
            "started_at": str(started_at),
        } if cwd and life and all(type(each) is str for each in [*env, *env.values()]):
            return TerminalSettings(
                name=name,
                life=life,
                shell=text_of_path(shell),  # an older version kept lone surrogates
                cwd=cwd,
                env=env,
                cols=cols,
                rows=rows,
                started_at=started_at,
                root=root,
                stderr="separate" if fields.get("stderr") == "separate" else "merged",
                opener=str(fields.get("opener", "human")),
                withheld=_withheld(fields),
            )
        case _:
            return None


def _withheld(fields: Mapping[str, Any]) -> tuple[str, ...]:
    match fields.get("withheld"):
        case [*names] if all(type(each) is str for each in names):
            return tuple(names)
    # An older version wrote none: an agent's terminal had every key.
    return tuple(sorted(withhold_keys(str(fields.get("opener", "human")))))


@attrs.frozen
class TerminalFiles:
    """The paths of one terminal's files (in ``.aegis/state/terminals/<name>/``).

    ``is_new``: when its actors start for the first time, there are only those of ``save_settings``.
    """

    directory: Path
    is_new: bool = attrs.field(default=False, kw_only=True, eq=False)
    ledger: Path = attrs.field(init=False, eq=False, repr=False)
    """The ledger, one line per finished command. Computed once, for its readers and its writer."""

    @ledger.default
    def _ledger(self) -> Path:
        return self.directory / "ledger.jsonl"

    @property
    def meta(self) -> Path:
        """The settings."""
        return self.directory / "meta.json"

    @property
    def note(self) -> Path:
        """The note of the current command."""
        return self.directory / "in_flight.json"

    @property
    def subscribers(self) -> Path:
        """The subscribers, and the newest record of which each was notified."""
        return self.directory / "subscribers.json"

    @property
    def shell(self) -> Path:
        """The note of the running shell, by which its processes can be ended."""
        return self.directory / "shell.json"
