"""The verb ``acp``: sessions as the threads of an editor."""

from __future__ import annotations

from aegis.cli.grammar.verb import TargetDaemon, live_verb, option
from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.failures import UsageError


@live_verb(
    option("--handle", "agent", metavar="AGENT", help="The thread is this live session."),
    option("--profile", metavar="PROFILE", help="A new thread is a session of this profile."),
)
def acp(daemon: TargetDaemon, agent: str | None, profile: str | None) -> int:
    """Serve an editor: sessions as its threads, over ACP.

    For Zed, JetBrains, Neovim, Emacs and others that speak the Agent Client Protocol on standard
    input and output. A session continues when the editor is closed.
    """
    if agent is not None and profile is not None:
        raise UsageError("give --handle or --profile, not both")
    if daemon.handle is not None:
        raise UsageError("an editor acts as its person: leave --as out")
    # Imported late: Trio and the client are loaded for no other verb.
    from aegis.acp.agent import EditorSettings
    from aegis.acp.launch import can_serve, run_acp

    if not can_serve():
        raise UsageError("standard input and output must be pipes: an editor starts this command")
    return run_acp(
        EditorSettings(root=daemon.root, handle=agent, profile=profile, wording=in_verbs)
    )
