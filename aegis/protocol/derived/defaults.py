"""Configured defaults for arguments that a caller left out. Pure.

The fields of commands whose metadata names a setting (``configurable``) get its value before the
arguments are checked, so all faces behave alike and the actors always find a value.
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
    """Return ``arguments`` with the values of ``settings`` for missing ones.

    ``settings`` has values by the keys of the configuration; a missing one or None leaves the
    command's own default. Arguments of the caller are kept, valid or not.
    """
    missing = {
        argument: settings[setting]
        for argument, setting in settings_of(entry.command).items()
        if argument not in arguments and settings.get(setting) is not None
    }
    return {**arguments, **missing} if missing else arguments


def settings_of(command: type) -> Mapping[str, str]:
    """Return the key of the configuration for each argument that has one; do not change it."""
    form: Any = command
    return _settings_of(form)


@functools.cache
def _settings_of(command: type) -> dict[str, str]:
    named = ((field.name, field.metadata.get("setting")) for field in resolved_fields(command))
    return {name: setting for name, setting in named if setting is not None}
