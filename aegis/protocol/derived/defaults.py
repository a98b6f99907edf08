"""What a caller left out and the daemon's owner has set. Pure.

The fields of commands whose metadata names a setting (``configurable``) get it before the arguments
are checked. So every face is served alike, and who carries a command out never meets a gap.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from actors.codec import resolved_fields
from aegis.protocol.entry import Entry


def with_settings(
    entry: Entry, arguments: Mapping[str, object], settings: Mapping[str, object]
) -> Mapping[str, object]:
    """``arguments`` with what ``settings`` hold for those that are not there.

    ``settings`` are values by the keys of the configuration; one that is missing or None leaves
    the command's own default. What a caller gave stays as it is, right or wrong.
    """
    missing = {
        argument: settings[setting]
        for argument, setting in settings_of(entry.command).items()
        if argument not in arguments and settings.get(setting) is not None
    }
    return {**arguments, **missing} if missing else arguments


def settings_of(command: type) -> Mapping[str, str]:
    """The key of the configuration for each argument that has one; do not change it."""
    form: Any = command
    return _settings_of(form)


@functools.cache
def _settings_of(command: type) -> dict[str, str]:
    named = ((field.name, field.metadata.get("setting")) for field in resolved_fields(command))
    return {name: setting for name, setting in named if setting is not None}
