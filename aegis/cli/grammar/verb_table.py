"""Where each verb of the program is: ``module:name``, imported when the verb is used."""

from __future__ import annotations

VERBS = {
    "up": "aegis.cli.up:up",
    "down": "aegis.cli.daemon:down",
    "status": "aegis.cli.daemon:status",
    "tree": "aegis.cli.daemon:tree",
    "term": "aegis.cli.term:term",
    "workspace": "aegis.cli.workspace:workspace",
    "shell": "aegis.cli.shell:shell",
    "inbox": "aegis.cli.inbox:inbox",
    "session": "aegis.cli.session:session",
    "token": "aegis.cli.session:token",
    "node": "aegis.cli.node:node",
    "join": "aegis.cli.node:join",
    "mcp": "aegis.cli.mcp:mcp",
    "doctor": "aegis.cli.doctor:doctor",
    "config": "aegis.cli.config:config",
    "completion": "aegis.cli.completion:completion",
}
