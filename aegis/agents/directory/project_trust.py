"""The answer to a person who looks at the settings of a project, or trusts them."""

from __future__ import annotations

from functools import partial

from actors import System
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.project_code import project_code
from aegis.agents.directory.working_directory import place_of
from aegis.errors import InvalidRequest, StorageError
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text
from aegis.protocol.trust import ProjectTrust, TrustProject


async def trust(message: TrustProject, programs: Programs, system: System) -> ProjectTrust:
    """Return the settings as they are now, once they are trusted if that was ordered.

    Raises ``AegisError``, ``ActorError``.
    """
    profile = programs.profile(message.profile)
    cwd = await place_of(message.workspace, message.directory, system, programs.root)
    provider, home = profile.provider.name, programs.variables.get("HOME")
    code = await in_thread_or_here(partial(project_code, provider, path_of_text(cwd), home))
    try:
        if message.digest is not None:
            if message.digest != code.digest or code.problem:
                raise InvalidRequest(
                    "agent trust: nothing is trusted: "
                    + (code.problem or f"the settings of {cwd} have changed; look at them again")
                )
            await in_thread_or_here(programs.trust, code.digests)
        trusted = await in_thread_or_here(programs.trusted)
    except OSError as error:
        raise StorageError(f"agent trust: the trust is not stored: {error.strerror}") from error
    return ProjectTrust(
        profile=profile.name,
        directory=cwd,
        wanted=profile.project_settings,
        files=list(code.files),
        shown=list(code.shown),
        digest=code.digest,
        is_trusted=code.is_within(trusted),
        problem=code.problem,
    )
