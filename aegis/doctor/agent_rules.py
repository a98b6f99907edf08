"""Rules for agent programs: their versions and logins. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aegis.agents.drivers.providers import Provider
from aegis.doctor.finding import Finding, ok, warning
from aegis.names import shorten

_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})+")


def version_in(output: str) -> str | None:
    """Return the first version in what a program printed; None if there is none."""
    found = _VERSION.search(output)
    return None if found is None else found[0]


def judge_missing(provider: Provider) -> Finding:
    """Return the finding about a program that is not installed; no profile needs it."""
    return ok(_subject(provider), f"not installed; to install it: {provider.install}")


def judge_version(provider: Provider, path: str, output: str, login: str) -> Finding:
    """Return the finding about an installed program that printed ``output`` for its version.

    ``login`` is its login, as ``login_of`` describes it.
    """
    version = version_in(output)
    if version is None:
        shown = f"{shorten(output.strip())!r}" if output.strip() else "nothing"
        return judge_failure(provider, path, f"printed {shown} in place of its version")
    sentence = f"{provider.title} {version} ({path}), {login}"
    if _numbers(version) < _numbers(provider.oldest):
        return warning(
            _subject(provider),
            f"{sentence}; it was tried with {provider.oldest} and newer ones only",
            f"upgrade it: {provider.install}",
        )
    return ok(_subject(provider), sentence)


def judge_failure(provider: Provider, path: str, failure: str) -> Finding:
    """Return the finding about a program that did not print its version: ``failure`` says how."""
    return warning(
        _subject(provider),
        f"{path} {failure}",
        f"see what {path} --version prints, or install it again: {provider.install}",
    )


def login_of(provider: Provider, variables: Mapping[str, str], key_file: str | None) -> str:
    """Describe the login of a provider, as far as it is visible without a model.

    ``key_file`` is the file with its keys, if there is one.
    """
    for name in provider.key_variables:
        if variables.get(name):
            return f"logged in by {name}"
    if key_file is not None:
        return f"logged in by {key_file}"
    return f"login unknown (to log in: {provider.login})"


def key_files_of(provider: Provider, variables: Mapping[str, str], home: str) -> list[str]:
    """Return the paths of the files that may have the keys of a provider."""
    paths = []
    for file in provider.key_files:
        moved = [
            f"{variables[name]}{file.removeprefix(default)}"
            for name, default in provider.home_variables.items()
            if variables.get(name) and file.startswith(f"{default}/")
        ]
        paths += moved or [f"{home}/{file}"]
    return paths


def _subject(provider: Provider) -> str:
    return f"agent {provider.name}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
