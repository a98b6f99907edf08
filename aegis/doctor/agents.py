"""The check of agent programs: installed, as new as the tried versions, logged in.

Only the programs of known providers are run, by their names in PATH, and only for their versions.
The command of a profile is looked for and not run: a foreign checkout may name it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from aegis.agents.drivers.providers import PROVIDERS, Provider
from aegis.agents.profiles.profile import Profile, own_keys, profile_of, refuse_start
from aegis.configuration.file import read_configuration
from aegis.configuration.problems import BadConfiguration
from aegis.doctor.agent_rules import (
    judge_failure,
    judge_missing,
    judge_version,
    key_files_of,
    login_of,
)
from aegis.doctor.finding import Finding, ok, warning
from aegis.processes.environment import KEY_VARIABLES, handed_on
from aegis.state.root import CONFIG_NAME, StatePaths

VERSION_LIMIT_S = 15.0
"""The time that all programs together have to print their versions."""

MAX_OUTPUT_BYTES = 4096


def examine_agents(state: StatePaths) -> Iterator[Finding]:
    """Yield a finding for each known agent program, and one for each profile that cannot start."""
    known = [provider for provider in PROVIDERS if provider.start]
    paths = {each.name: shutil.which(each.start[0]) for each in known}
    deadline = time.monotonic() + VERSION_LIMIT_S
    asked = {
        each.name: _ask_version(path) for each in known if (path := paths[each.name]) is not None
    }
    try:
        for provider in known:
            path = paths[provider.name]
            if path is None:
                yield judge_missing(provider)
            else:
                yield _judge(provider, path, asked[provider.name], deadline)
    finally:
        for each in asked.values():
            if not isinstance(each, OSError):
                _end(each)
    for profile in _profiles(state):
        yield from _judge_profile(profile, os.environ)


def _ask_version(path: str) -> subprocess.Popen[bytes] | OSError:
    try:
        return subprocess.Popen(
            [path, "--version"],
            cwd="/",  # so that it reads no configuration of a checkout
            env=handed_on(os.environ)[0],  # as the daemon starts it
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return error


def _judge(
    provider: Provider, path: str, asked: subprocess.Popen[bytes] | OSError, deadline: float
) -> Finding:
    if isinstance(asked, OSError):
        return judge_failure(provider, path, f"cannot be run: {asked.strerror or asked}")
    output = _read_output(asked, deadline)
    if output is None:
        return judge_failure(provider, path, f"printed no version within {VERSION_LIMIT_S:g} s")
    files = key_files_of(provider, os.environ, os.path.expanduser("~"))  # noqa: PTH111 (Path.home refuses an id without a name)
    key_file = next((each for each in files if _has_content(each)), None)
    login = login_of(provider, os.environ, key_file)
    return judge_version(provider, path, output.decode(errors="replace"), login)


def _read_output(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """Return the beginning of the output; None if there is none in time."""
    assert process.stdout is not None
    output = b""
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    while len(output) < MAX_OUTPUT_BYTES:
        left_s = max(0.0, deadline - time.monotonic())
        if not poll.poll(left_s * 1000):
            return output or None
        more = os.read(process.stdout.fileno(), MAX_OUTPUT_BYTES)
        if not more:
            break
        output += more
    return output


def _end(process: subprocess.Popen[bytes]) -> None:
    # Before the wait: a process that was not waited for keeps its group's id from being reused.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _has_content(path: str) -> bool:
    with suppress(OSError):
        return os.stat(path).st_size > 0  # noqa: PTH116 (a text from the environment)
    return False


def _profiles(state: StatePaths) -> list[Profile]:
    try:
        parsed = read_configuration(state.root / CONFIG_NAME)
    except BadConfiguration:
        return []  # the check of the configuration reports it
    agents = parsed.configuration.agents
    return [profile_of(name, section) for name, section in agents.items()]


def _judge_profile(profile: Profile, variables: Mapping[str, str]) -> Iterator[Finding]:
    subject = f"profile {profile.name}"
    keys = sorted(KEY_VARIABLES & variables.keys())
    if keys and not own_keys(profile):
        sentence = f"its provider is not known, so it gets none of the keys {', '.join(keys)}"
        named = f"name the one it needs in agents.{profile.name}.env"
        yield ok(f"keys of {subject}", f"{sentence}: {named}")
    refusal = refuse_start(profile, variables)
    if refusal is not None:
        yield warning(subject, refusal, f"correct the profile in {CONFIG_NAME}")
    program = profile.command[0]
    if shutil.which(program) is None:
        install = profile.provider.install if program in profile.provider.start[:1] else ""
        remedy = f"install it: {install}" if install else "install it, or correct its command"
        yield warning(subject, f"it runs {program!r}, which is not installed", remedy)
