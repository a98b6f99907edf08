"""The check that the state is this user's own, by the rules of a start of the daemon."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.configuration.file import programs_of, read_configuration
from aegis.configuration.problems import BadConfiguration
from aegis.doctor.finding import Finding, ok, problem
from aegis.errors import StartupError
from aegis.state.registry import RegistryError, StateRegistry
from aegis.state.root import CONFIG_NAME, StatePaths, UntrustedState, open_seals
from aegis.state.state_files import UnsafeFile
from aegis.trust import NamedPrograms, examine, forged_files, shown
from aegis.workflows.plugins.found import digest_of_all, find_plugins, sentences_of

SUBJECT = "trust"
TRUST = "if you trust its content: aegis-actors up --trust"


def examine_trust(state: StatePaths) -> Iterator[Finding]:
    """Yield why the daemon would refuse the state; change nothing. Raises ``OSError``."""
    try:
        state_id = examine(state, trust=False, programs=_programs(state))
        if state_id is None:
            StateRegistry.of_user().check_writable()
        forged = [] if state_id is None else forged_files(state, open_seals(str(state.root)))
    except UntrustedState as error:
        yield problem(SUBJECT, f"the state is not used: {error.why}", TRUST)
    except UnsafeFile as error:
        sentence = f"{error.filename} is not used: {error.strerror}"
        yield problem(SUBJECT, sentence, "move it away, or run this as the user whose state it is")
    except (RegistryError, StartupError) as error:
        yield problem(SUBJECT, str(error), "then try again")
    else:
        if forged:
            yield problem(SUBJECT, f"your daemons did not write {shown(forged)}", TRUST)
        else:
            yield ok(SUBJECT, "the state is yours" if state_id else "there is no state yet")


def _programs(state: StatePaths) -> NamedPrograms:
    try:
        parsed = read_configuration(state.root / CONFIG_NAME)
    except BadConfiguration:
        return NamedPrograms()  # the check of the configuration reports it
    plugins = find_plugins(state.root, parsed.configuration.plugin_dirs)
    sentences = (*programs_of(parsed.configuration), *sentences_of(plugins))
    return NamedPrograms(sentences, digest_of_all(parsed.digest, plugins))
