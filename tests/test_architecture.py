"""The import law: which module may import which, held by reading the sources.

``LAW`` is the one table to change when a file is added or moved. A module that no rule covers
is a violation too: everything has a place.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[1]

Rule = tuple[str, tuple[str, ...]]

TRIED_BY_CHAOS = (
    *(
        "agents",
        "app",
        "canvases",
        "client.errors",
        "clock",
        "configuration",
        "errors",
        "following",
        "groups",
        "inboxes",
        "journal",
        "processes",
        "protocol",
        "queues",
        "requests",
        "terminals",
        "turns",
        "workflows",
    ),
    *("state.root", "state.sealing", "workspaces"),
)

COMMON = (
    *("actors", "aegis.protocol", "aegis.errors", "aegis.clock", "aegis.names"),
    *(
        "aegis.publishing",
        "aegis.following",
        "aegis.directories",
        "aegis.limits",
        "aegis.path_text",
        "aegis.shown_text",
        "aegis.hidden_urls",
    ),
)
"""Parts that every primitive may import."""

DURABLE = (*COMMON, "aegis.journal", "aegis.state.sealing", "aegis.state.state_files")

TERMINALS = tuple(
    f"aegis.terminals.{name}"
    for name in (
        *("faults", "front_port", "header", "history", "messages", "meta"),
        *("quarantine",),
        *("record", "retry", "sentences", "settings", "typed"),
    )
)
"""The modules of ``aegis.terminals`` that all its packages share."""

SERVERS = tuple(
    f"aegis.servers.{name}"
    for name in (
        *("calls", "connection", "faults", "json_text", "progress", "requests", "dispatcher"),
        *("call_limit", "unanswered"),
    )
)
"""The modules of ``aegis.servers`` that all its packages share; ``serving`` knows all."""


def packages(parent: str, shared: tuple[str, ...], order: dict[str, str]) -> list[Rule]:
    """Rules of the packages in ``parent``: each may import ``shared`` and the ones it names."""
    return [
        (
            f"{parent}.{name}*",
            (*shared, *(f"{parent}.{each}" for each in (name, *others.split()))),
        )
        for name, others in order.items()
    ]


LAW: list[Rule] = [
    # A module or package (the first pattern that fits), and what it may import of ours.
    ("actors.codec*", ("actors.errors", "actors.codec")),
    ("actors*", ("actors",)),
    (
        "aegis",
        (
            *("aegis.client", "aegis.workflows.child.engine", "aegis.workflows.decorator"),
            "aegis.workflows.results",
        ),
    ),
    ("aegis.path_text", ()),
    ("aegis.shown_text", ()),
    ("aegis.hidden_urls", ()),
    ("aegis.limits", ("aegis.errors",)),
    ("aegis.json_bounds", ()),
    ("aegis.settings", ()),
    ("aegis.ready_text", ("aegis.path_text",)),
    ("aegis.clock", ()),
    ("aegis.program", ("aegis.path_text",)),
    ("aegis.errors", ("actors.errors",)),
    ("aegis.faults", ("actors", "aegis.errors")),
    ("aegis.names", ("aegis.errors", "aegis.protocol.naming")),
    ("aegis.directories", ("aegis.errors", "aegis.names", "aegis.path_text")),
    ("aegis.following", ("actors", "aegis.errors", "aegis.protocol")),
    ("aegis.publishing", ("actors", "aegis.protocol")),
    # The directory of a root's state, and whose it is.
    ("aegis.state*", ("aegis.path_text", "aegis.state")),
    ("aegis.trust", ("aegis.errors", "aegis.journal", "aegis.path_text", "aegis.state")),
    ("aegis.daemon_process", ("aegis.errors", "aegis.journal.disk", "aegis.state", "aegis.trust")),
    (
        "aegis.node_key",
        (
            "actors.errors",
            "actors.nodes.links.key",
            "aegis.errors",
            "aegis.daemon_process",
            "aegis.state",
        ),
    ),
    (
        "aegis.protocol*",
        (
            *("actors.messages", "actors.codec", "actors.errors"),
            *("aegis.errors", "aegis.json_bounds", "aegis.path_text", "aegis.protocol"),
        ),
    ),
    # The table of providers is pure data: the names and rules of profiles come from it.
    (
        "aegis.configuration.agents",
        (
            *("aegis.agents.drivers.harness", "aegis.agents.drivers.providers"),
            *("aegis.configuration", "aegis.protocol"),
        ),
    ),
    (
        "aegis.configuration.profile_rules",
        (
            *("aegis.agents.drivers.providers", "aegis.configuration", "aegis.names"),
            "aegis.protocol",
        ),
    ),
    (
        "aegis.configuration*",
        ("actors.codec", "aegis.configuration", "aegis.names", "aegis.path_text", "aegis.protocol"),
    ),
    (
        "aegis.journal*",
        (
            *("actors", "aegis.clock", "aegis.errors", "aegis.journal", "aegis.names"),
            *("aegis.limits", "aegis.path_text", "aegis.state.sealing", "aegis.state.state_files"),
        ),
    ),
    ("aegis.processes.guarded.guard", ()),
    ("aegis.processes.init_process", ()),
    (
        "aegis.processes*",
        (
            *("aegis.clock", "aegis.errors", "aegis.hidden_urls", "aegis.limits"),
            *("aegis.path_text", "aegis.processes", "aegis.protocol"),
        ),
    ),
    (
        "aegis.lifecycle*",
        (
            *("actors.messages", "aegis.lifecycle", "aegis.processes.input_wait"),
            "aegis.shown_text",
        ),
    ),
    # The packages of terminals, from the lowest up.
    *packages(
        "aegis.terminals",
        (*DURABLE, "aegis.lifecycle", "aegis.processes", *TERMINALS),
        {
            "parse": "",
            "screen": "parse",
            "hooks": "parse",
            "output": "parse screen",
            "wakes": "output",
            "shell": "parse hooks screen output",
            "front": "parse hooks screen output wakes shell",
            "remote": "wakes",
            "directory": "parse hooks screen output wakes shell front remote",
        },
    ),
    ("aegis.terminals", ()),
    ("aegis.terminals*", (*DURABLE, "aegis.lifecycle", "aegis.processes", *TERMINALS)),
    ("aegis.workspaces*", (*DURABLE, "aegis.processes", "aegis.workspaces")),
    ("aegis.turns*", (*COMMON, "aegis.turns")),
    ("aegis.telegram*", (*DURABLE, "aegis.telegram", "aegis.turns")),
    (
        "aegis.push*",
        (*DURABLE, "aegis.push", "aegis.turns", "aegis.state.sealing", "aegis.state.state_files"),
    ),
    *(
        (f"aegis.{primitive}*", (*DURABLE, "aegis.turns", f"aegis.{primitive}"))
        for primitive in ("queues", "groups", "history", "requests")
    ),
    # Plugins: what their authors import, and the program that runs them.
    ("aegis.workflows.decorator", ()),
    ("aegis.workflows.plugins.found", ()),
    (
        "aegis.workflows*",
        (*DURABLE, "aegis.turns", "aegis.processes", "aegis.workflows"),
    ),
    *(
        (f"aegis.{primitive}*", (*DURABLE, f"aegis.{primitive}"))
        for primitive in ("inboxes", "canvases")
    ),
    # Agents: protocol machines and processes below, sessions above.
    (
        "aegis.agents.messages",
        ("actors.messages", "aegis.agents.drivers.harness", "aegis.protocol"),
    ),
    (
        "aegis.agents.drivers*",
        (
            *COMMON,
            *("aegis.agents.drivers", "aegis.agents.faults", "aegis.agents.messages"),
            "aegis.processes",
        ),
    ),
    (
        "aegis.agents.profiles.families",
        (*COMMON, "aegis.agents.drivers", "aegis.agents.profiles", "aegis.program"),
    ),
    *packages(
        "aegis.agents",
        (*COMMON, "aegis.agents.drivers", "aegis.configuration", "aegis.processes.environment"),
        {"profiles": ""},
    ),
    (
        "aegis.agents.interactive.hook_sender",
        (),
    ),
    (
        "aegis.agents.interactive.takeover",
        (
            *(*COMMON, "aegis.agents.faults", "aegis.agents.interactive", "aegis.agents.sessions"),
            *("aegis.agents.drivers.tui", "aegis.lifecycle", "aegis.processes.reaper"),
            "aegis.agents.drivers.conversations.found",
        ),
    ),
    (
        "aegis.agents.interactive*",
        (
            *(*COMMON, "aegis.agents.faults", "aegis.agents.interactive", "aegis.agents.sessions"),
            *("aegis.configuration", "aegis.lifecycle"),
        ),
    ),
    ("aegis.agents.render", ("aegis.names", "aegis.protocol", "aegis.shown_text")),
    (
        "aegis.agents*",
        (*DURABLE, "aegis.processes", "aegis.agents", "aegis.configuration"),
    ),
    # The servers, likewise.
    *packages(
        "aegis.servers",
        (
            *(*COMMON, "aegis.json_bounds", "aegis.state.sealing", "aegis.state.state_files"),
            *SERVERS,
        ),
        {
            "access": "",
            "gateway": "access",
            "streams": "access",
            "wires": "access gateway streams",
            "mcp": "access gateway streams wires",
        },
    ),
    ("aegis.servers.serving", (*COMMON, "aegis.servers")),
    ("aegis.servers*", (*COMMON, "aegis.json_bounds", "aegis.servers.access", *SERVERS)),
    # The daemon, and where terminals run beside its own process.
    (
        "aegis.daemon",
        (
            *("actors", "aegis.protocol", "aegis.errors", "aegis.examination", "aegis.names"),
            "aegis.path_text",
        ),
    ),
    # It runs the verb `doctor` as a process, and so imports no check.
    (
        "aegis.examination",
        (
            *("aegis.errors", "aegis.limits", "aegis.path_text", "aegis.processes.environment"),
            *("aegis.processes.process_table", "aegis.protocol", "aegis.workspaces.cookie"),
        ),
    ),
    (
        "aegis.keyring",
        (
            *("aegis.errors", "aegis.journal.disk", "aegis.limits", "aegis.protocol"),
            *("aegis.servers", "aegis.state.endpoint", "aegis.state.root", "aegis.state.sealing"),
        ),
    ),
    (
        "aegis.coordination",
        (
            *("actors", "aegis.agents.directory.programs", "aegis.canvases", "aegis.groups"),
            *("aegis.history", "aegis.inboxes.history"),
            *("aegis.configuration", "aegis.journal.archive", "aegis.journal.flusher"),
            *("aegis.path_text", "aegis.queues", "aegis.requests"),
            *("aegis.settings", "aegis.state.root", "aegis.trust", "aegis.workflows"),
        ),
    ),
    (
        "aegis.lifetime",
        (
            *("actors", "aegis.errors", "aegis.faults", "aegis.inboxes.faults", "aegis.journal"),
            *(
                "aegis.agents.faults",
                "aegis.canvases.faults",
                "aegis.daemon_process",
                "aegis.groups.faults",
                "aegis.processes.reaper",
                "aegis.queues.faults",
                "aegis.requests.faults",
                "aegis.servers.faults",
                "aegis.state.root",
                "aegis.telegram.faults",
                "aegis.terminals",
                "aegis.workflows.faults",
            ),
        ),
    ),
    (
        "aegis.nodes*",
        (
            *("actors", "aegis.__version__", "aegis.clock", "aegis.errors", "aegis.journal"),
            *("aegis.lifetime", "aegis.names", "aegis.node_key", "aegis.nodes"),
            *("aegis.path_text", "aegis.daemon_process", "aegis.processes", "aegis.protocol"),
            *("aegis.settings", "aegis.state", "aegis.terminals"),
        ),
    ),
    # Clients.
    ("aegis.client.errors", ()),
    (
        "aegis.client.line",
        ("aegis.client.errors", "aegis.client.sizes", "aegis.path_text", "aegis.state"),
    ),
    ("aegis.client.sizes", ("aegis.client.errors",)),
    (
        "aegis.client.nonblocking_line",
        ("aegis.client.errors", "aegis.client.line", "aegis.path_text"),
    ),
    ("aegis.client.pending", ("aegis.client.sizes",)),
    (
        "aegis.client.bridge",
        (
            *("aegis.client.errors", "aegis.client.line", "aegis.client.pending"),
            *("aegis.path_text", "aegis.state"),
        ),
    ),
    (
        "aegis.client*",
        (
            *("actors.codec", "actors.errors", "aegis.protocol", "aegis.errors"),
            *("aegis.client", "aegis.path_text", "aegis.state"),
        ),
    ),
    (
        "aegis.cli.up",
        (
            *("actors.errors", "actors.nodes.installed", "aegis.app", "aegis.cli"),
            *("aegis.configuration", "aegis.errors", "aegis.settings", "aegis.state.root"),
            *("aegis.path_text", "aegis.processes.environment", "aegis.workflows.plugins.found"),
            "aegis.processes.init_process",
        ),
    ),
    (
        "aegis.cli.node",
        (
            *("actors.errors", "actors.nodes.installed", "aegis.cli", "aegis.errors"),
            *("aegis.node_key", "aegis.protocol.naming", "aegis.settings", "aegis.state.root"),
            "aegis.processes.init_process",
        ),
    ),
    ("aegis.cli.grammar.addresses", ("aegis.settings",)),
    ("aegis.entry.aegis_actors", ("aegis.cli.main",)),
    ("aegis.cli.config", ("aegis.cli", "aegis.configuration", "aegis.state.root")),
    ("aegis.cli.doctor", ("aegis.cli", "aegis.doctor", "aegis.state.root")),
    # A time without a zone is local to the person, who may sit at another machine than the daemon.
    (
        "aegis.cli.grammar.verb",
        (
            *("aegis.cli", "aegis.client.errors", "aegis.client.line"),
            *("aegis.client.nonblocking_line", "aegis.clock"),
            *("aegis.path_text", "aegis.state.root"),
        ),
    ),
    ("aegis.cli.mcp", ("aegis.cli", "aegis.client.bridge", "aegis.state.root")),
    ("aegis.cli.tui", ("aegis.cli", "aegis.client.line", "aegis.tui")),
    # The terminal interface: a client like any other, and the text of events.
    (
        "aegis.tui*",
        ("aegis.agents.render", "aegis.client", "aegis.protocol", "aegis.shown_text", "aegis.tui"),
    ),
    ("aegis.cli.acp", ("aegis.cli", "aegis.acp")),
    # Editors: a client like any other, with the frames of ACP and the text of events.
    (
        "aegis.acp*",
        (
            *(
                "aegis.__version__",
                "aegis.acp",
                "aegis.agents.drivers.acp.frames",
                "aegis.shown_text",
            ),
            *("aegis.agents.render", "aegis.client", "aegis.json_bounds", "aegis.protocol"),
        ),
    ),
    ("aegis.cli.printing.formatting", ("aegis.program", "aegis.shown_text")),
    # Verbs over the Python client, loaded when such a verb is used.
    ("aegis.cli.live*", ("aegis.cli", "aegis.client", "aegis.protocol", "aegis.state.root")),
    (
        "aegis.cli*",
        (
            *("aegis.cli", "aegis.client.line", "aegis.client.nonblocking_line"),
            *("aegis.path_text", "aegis.program", "aegis.state.root", "aegis.protocol.naming"),
        ),
    ),
    (
        "aegis.doctor*",
        (
            *("aegis.__version__", "aegis.client.line", "aegis.configuration", "aegis.doctor"),
            *("aegis.agents.drivers.providers", "aegis.agents.profiles.profile"),
            *(
                "aegis.errors",
                "actors.errors",
                "aegis.journal",
                "aegis.names",
                "aegis.daemon_process",
                "aegis.processes.environment",
            ),
            *("aegis.servers.access.auth", "aegis.state", "aegis.terminals.record", "aegis.trust"),
            "aegis.workflows.plugins.found",
        ),
    ),
    # It joins the process table, agents and terminals: the identity of a connected process.
    (
        "aegis.peers",
        (
            *("actors", "aegis.agents.drivers.cookie", "aegis.errors", "aegis.processes"),
            *("aegis.protocol", "aegis.servers.calls", "aegis.terminals.messages"),
            *("aegis.workflows.cookie", "aegis.workspaces.cookie"),
        ),
    ),
    ("aegis.app", ("actors", "aegis")),
    # It forks daemons, and so imports what they do.
    ("tests.chaos.real.fork_server", ("aegis",)),
    # The harness. It tries a real daemon from outside: its wire, command line and fault points.
    (
        "tests.chaos.real.agents*",
        (
            *("aegis.agents.faults", "aegis.client.line", "aegis.journal.ledger"),
            *("aegis.requests.faults", "tests.chaos.agent_notes", "tests.chaos.checking"),
            *("tests.chaos.notebook", "tests.chaos.real"),
        ),
    ),
    (
        "tests.chaos.real*",
        (
            *("aegis.client.line", "aegis.faults", "aegis.state"),
            *("tests.chaos.checking", "tests.chaos.commands", "tests.chaos.notebook"),
            "tests.chaos.real",
        ),
    ),
    ("tests.chaos.__main__", ("aegis.cli", "tests.chaos")),
    ("tests.chaos*", ("actors", *(f"aegis.{part}" for part in TRIED_BY_CHAOS), "tests.chaos")),
]

PURE = (
    "actors.codec*",
    "actors.errors",
    "actors.messages",
    "actors.policy",
    "actors.spec",
    "aegis.errors",
    "aegis.clock",
    "aegis.names",
    "aegis.protocol*",
    "aegis.journal.ledger",
    "aegis.inboxes.rows",
    "aegis.processes.capture",
    "aegis.processes.line",
    "aegis.terminals.wakes.notification",
    "aegis.processes.process_table",
    "aegis.terminals.parse*",
    "aegis.terminals.record",
    "aegis.terminals.hooks.submission",
    "aegis.processes.text",
)
"""Pure files: these, and every file whose docstring ends a sentence with the one word "Pure."."""

IMPURE = (
    "trio",
    "os",
    "io",
    "subprocess",
    "socket",
    "select",
    "selectors",
    "signal",
    "threading",
    "multiprocessing",
    "asyncio",
    "fcntl",
    "termios",
    "pty",
    "tempfile",
    "shutil",
    "time",
    "random",
)

MCP_FILES = ("aegis.servers.mcp*", "tests.chaos.real.sessions")

ONLY_IN = {
    "mcp": MCP_FILES,
    "mcp_types": MCP_FILES,
    "trio_websocket": ("aegis.servers*", "aegis.client*"),
    "structlog": ("aegis*", "tests.chaos*"),
    "click": ("aegis.cli*", "tests.chaos.__main__"),
    "cattrs": ("actors.codec*",),
    "re2": ("aegis.terminals.output.patterns",),
    "tractor": ("actors.nodes.compat.loading",),
    "msgspec": ("actors.nodes.links.packets",),
    "pyte": ("aegis.terminals.screen*",),
    "avt": ("aegis.terminals.screen*", "aegis.tui*"),
    "textual": ("aegis.tui*",),
    "httpx2": ("aegis.telegram.api", "aegis.push*", "tests.chaos.real.sessions"),
    "cryptography": ("aegis.push*",),
    "wcwidth": ("aegis.terminals.screen*",),
    "yaml": ("aegis.configuration*",),
    "rich": ("aegis.tui*",),
}
"""Libraries that only one place may touch."""

KNOWN_ONLY_TO: dict[str, tuple[str, ...]] = {
    "actors.nodes": (
        "actors.nodes*",
        "aegis.nodes*",
        "aegis.node_key",
        "aegis.cli.up",
        "aegis.cli.node",
    ),
    "aegis.nodes": ("aegis.nodes*", "aegis.app"),
}
"""Packages that only these may import.

Nodes need an extra that may not be there: whoever does without them does not load them.
"""

ONLY_LAZILY = {
    "tractor": ("actors.nodes*",),
    "avt": ("aegis.terminals.screen*",),
    "aegis.terminals.screen.avt_grid": ("aegis*",),
    "aegis.terminals.screen.pyte_grid": ("aegis*",),
    "aegis.app": ("aegis.cli*",),
    "aegis.configuration": ("aegis.cli*",),
    "aegis.doctor": ("aegis.cli.doctor",),
    "aegis.tui": ("aegis.cli*", "aegis.app"),
    "aegis.telegram": ("aegis.app",),
    "aegis.cli.live": ("aegis.cli.attach", "aegis.cli.daemon", "aegis.cli.term"),
    "aegis.errors": ("aegis.cli*",),
    "aegis.nodes": ("aegis.app", "aegis.cli*"),
    "aegis.node_key": ("aegis.cli*",),
    "actors": ("aegis.cli*",),
}
"""Imported inside functions only, by these."""

RUNTIME_LIBRARIES = frozenset({"trio", "outcome", "attr", "attrs", "cattrs", "tractor", "msgspec"})
"""All that ``actors`` may import beside the standard library; ``outcome`` is Trio's own."""


@attrs.frozen
class Import:
    """One import statement's target; ``lazy`` when it stands inside a function."""

    target: str
    line: int
    lazy: bool


def within(target: str, part: str) -> bool:
    return target == part or target.startswith(f"{part}.")


def fits(module: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern fits: ``aegis.cli`` alone, ``aegis.cli*`` with all that is in it."""
    return any(
        within(module, pattern[:-1]) if pattern.endswith("*") else module == pattern
        for pattern in patterns
    )


def imports_of(tree: ast.Module) -> Iterator[Import]:
    """Every import, wherever it stands, those for type checkers included."""
    lazy: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, id(node) in lazy)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Import(f"{origin}.{alias.name}", node.lineno, id(node) in lazy)


def violations(module: str, source: str) -> list[str]:
    """What ``module`` breaks, one sentence each."""
    tree = ast.parse(source)
    return [
        f"{module}:{imported.line} imports {imported.target}: {reason}"
        for imported in imports_of(tree)
        for reason in reasons_against(module, imported, pure=is_pure(module, tree))
    ]


def is_pure(module: str, tree: ast.Module) -> bool:
    doc = ast.get_docstring(tree) or ""
    return fits(module, PURE) or "Pure." in doc.split("\n\n")[0]


def reasons_against(module: str, imported: Import, *, pure: bool) -> Iterator[str]:
    target, top = imported.target, imported.target.split(".")[0]
    if target.startswith("."):
        yield "imports are absolute"
    if top in ("actors", "aegis", "tests") and not may_know(module, target):
        yield "the law does not let it know that"
    if pure and top in IMPURE:
        yield "the file is pure"
    if within(module, "actors") and not (
        top in sys.stdlib_module_names or top in RUNTIME_LIBRARIES or top == "actors"
    ):
        yield "actors knows only Trio, attrs, cattrs and the standard library"
    if top in ONLY_IN and not fits(module, ONLY_IN[top]):
        yield f"only {', '.join(ONLY_IN[top])} may"
    for part, who in KNOWN_ONLY_TO.items():
        if within(target, part) and not fits(module, who):
            yield f"only {', '.join(who)} may"
    for part, who in ONLY_LAZILY.items():
        if within(target, part) and fits(module, who) and not imported.lazy:
            yield "only inside a function"


def may_know(module: str, target: str) -> bool:
    for pattern, known in LAW:
        if fits(module, (pattern,)):
            return any(within(target, part) for part in known)
    return False


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of both packages and of the harness, with its file; not the harness's tests."""
    for package in ("actors", "aegis", "tests/chaos"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if package == "tests/chaos" and path.name.startswith(("test_", "conftest")):
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules()])
def test_the_law_holds(module: str, path: Path) -> None:
    assert fits(module, [pattern for pattern, _ in LAW]), f"{module} has no place in LAW"
    assert violations(module, path.read_text()) == []


def test_every_pure_file_that_is_named_exists() -> None:
    there = [module for module, _ in modules()]
    assert [pattern for pattern in PURE if not any(fits(m, (pattern,)) for m in there)] == []


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("actors.cell", "import aegis.errors", "the law"),
        ("actors.cell", "def f():\n    from aegis import app", "the law"),
        ("actors.cell", "import structlog", "actors knows only"),
        ("actors.cell", "from requests import get", "actors knows only"),
        ("actors.nodes.compat.loading", "import tractor", "only inside a function"),
        (
            "actors.nodes.workers.worker",
            "def f():\n    import tractor",
            "only actors.nodes.compat.loading",
        ),
        ("actors.nodes.compat.root", "def f():\n    import tractor._actor", "only actors.nodes."),
        ("actors.cell", "def f():\n    import tractor", "only actors.nodes.compat.loading may"),
        (
            "actors.supervisor",
            "from actors.nodes.workers.worker import Worker",
            "only actors.nodes*",
        ),
        ("aegis.app", "from actors.nodes import Worker", "only actors.nodes*"),
        ("actors.cell", "from .errors import ActorError", "imports are absolute"),
        ("actors.policy", "import trio", "pure"),
        ("actors.codec.reading", "from actors.ref import Ref", "the law"),
        ("actors.cell", "from cattrs import structure", "only actors.codec"),
        ("aegis.protocol.terminals", "from actors import Ref", "the law"),
        ("aegis.protocol.terminals", "from aegis.terminals import text", "the law"),
        ("aegis.protocol.derived.wire", "import os.path", "pure"),
        ("aegis.protocol.derived.wire", "from os import environ", "pure"),
        ("aegis.terminals.parse.osc133", "import threading", "pure"),
        ("aegis.servers.gateway.http1", '"""Lines. Pure."""\nimport socket', "pure"),
        ("aegis.terminals.shell.shell", "from aegis.inboxes import router", "the law"),
        ("aegis.terminals.shell.shell", "from aegis.servers.calls import Caller", "the law"),
        (
            "aegis.inboxes.inbox",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import aegis.terminals.shell",
            "the law",
        ),
        ("aegis.queues.queue", "import aegis.inboxes", "the law"),
        ("aegis.journal.disk", "from aegis.terminals import pty", "the law"),
        (
            "aegis.servers.gateway.http_app",
            "from aegis.terminals.front.terminal import Terminal",
            "the law",
        ),
        ("aegis.servers.gateway.http_app", "import mcp.server", "only aegis.servers.mcp*"),
        ("tests.chaos.real.load", "from mcp import Client", "only aegis.servers.mcp*"),
        ("tests.chaos.real.load", "from aegis.terminals import shell", "the law"),
        ("aegis.app", "from tests.chaos.real.run import run_real", "the law"),
        ("aegis.servers.gateway.http_app", "import mcp_types as types", "only aegis.servers.mcp*"),
        ("aegis.processes.pty", "import trio_websocket", "only aegis.servers"),
        ("aegis.client.line", "from aegis.errors import ConnectError", "the law"),
        ("aegis.cli.term", "from aegis.protocol.terminals import RunCommand", "the law"),
        ("aegis.cli.term", "def f():\n    from aegis.app import run_daemon", "the law"),
        ("aegis.cli.up", "from aegis.app import run_daemon", "only inside a function"),
        ("aegis.app", "from tests.chaos import exhaustive", "the law"),
        ("aegis.app", "from tests.chaos.exhaustive import explore", "the law"),
        ("aegis.errors", "import aegis.protocol.table", "the law"),
    ],
)
def test_the_checker_sees_what_breaks_the_law(module: str, source: str, reason: str) -> None:
    assert any(reason in violation for violation in violations(module, source))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("actors.cell", "import trio, attrs\nfrom actors.errors import ActorError"),
        ("actors.nodes.compat.loading", "def f():\n    import tractor"),
        ("aegis.protocol.derived.wire", "from actors.codec import structure\nimport json"),
        ("aegis.terminals.shell.shell", "import trio\nfrom aegis.journal import disk"),
        ("aegis.servers.mcp.tools", "import mcp.server\nfrom aegis.protocol.table import COMMANDS"),
        ("aegis.cli.up", "def f():\n    from aegis.app import run_daemon"),
        (
            "aegis.app",
            "from aegis.terminals.shell.shell import Shell\nimport aegis.servers.gateway.gateway",
        ),
        ("aegis.terminals.shell.shell", '"""Impure, as "pure" goes."""\nimport os'),
    ],
)
def test_the_checker_lets_the_lawful_pass(module: str, source: str) -> None:
    assert violations(module, source) == []


@pytest.mark.parametrize("module", ["aegis.climate", "aegis.telephone", "elsewhere"])
def test_a_module_without_a_place_in_the_law_may_know_nothing_of_ours(module: str) -> None:
    assert violations(module, "import aegis.errors") != []


Graph = dict[str, set[str]]

KNOWN_CIRCLES_OF_PACKAGES = ({"aegis.cli.grammar", "aegis.cli.printing"},)
"""Circles of packages that are still to be broken. This list only shrinks."""


@functools.cache
def import_graph() -> Graph:
    """Return the files of both packages and the files that each imports.

    Imports for type checkers and lazy ones count too: two files that name each other can only be
    read, and changed, together.
    """
    sources = {module: path for module, path in modules() if not within(module, "tests")}
    return {
        module: {
            file
            for imported in imports_of(ast.parse(path.read_text()))
            if (file := file_of(imported.target, sources)) not in (None, module)
        }
        for module, path in sources.items()
    }


def file_of(target: str, sources: Iterable[str]) -> str | None:
    """Return the module that ``target`` is, or that defines the name ``target``."""
    parent = target.rpartition(".")[0]
    return next((each for each in (target, parent) if each in sources), None)


def package_graph(files: Graph) -> Graph:
    """Return the packages and those that each imports, without a package's own sub-packages.

    A file directly in ``aegis`` counts as a package of its own.
    """
    graph: Graph = {package_of(module): set() for module in files}
    for module, imported in files.items():
        package = package_of(module)
        graph[package] |= {
            other
            for other in map(package_of, imported)
            if not within(other, package) and not within(package, other)
        }
    return graph


def package_of(module: str) -> str:
    parent = module.rpartition(".")[0]
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    return module if is_package or parent == "aegis" else parent


def circles(graph: Graph) -> list[set[str]]:
    """Return the sets of nodes that each reach every other one of their set."""
    reached = {node: reachable(graph, node) for node in graph}
    found: list[set[str]] = []
    for node in graph:
        circle = {other for other in reached[node] if node in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    pending = [start]
    while pending:
        new = graph[pending.pop()] - found
        found |= new
        pending.extend(new)
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = import_graph()
    assert len(graph) > 300
    assert circles(graph) == []


def test_no_packages_import_each_other_in_a_circle() -> None:
    graph = package_graph(import_graph())
    found = circles(graph)
    assert [circle for circle in found if circle not in KNOWN_CIRCLES_OF_PACKAGES] == []


def test_the_search_for_circles_finds_them() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f"}, "f": {"e"}}
    assert circles(graph) == [{"b", "c"}, {"e", "f"}]
    assert circles({"a": {"b"}, "b": set()}) == []


HEAVY = [*("trio", "cattrs", "attr", "attrs", "mcp", "structlog", "rich", "asyncio", "yaml")]


def loaded_by(statement: str) -> list[str]:
    """Which heavy modules are loaded after ``statement`` in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint(*(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return sorted(done.stdout.split())


CLI_MODULES = [
    m
    for m, _ in modules()
    if fits(m, ("aegis.cli*", "aegis.client.line", "aegis.state.endpoint", "aegis.state.root"))
    and not fits(m, ("aegis.cli.live*",))
]


@pytest.mark.parametrize("module", CLI_MODULES)
def test_the_command_line_loads_nothing_heavy(module: str) -> None:
    assert loaded_by(f"import {module}") == []


def test_the_check_for_heavy_modules_sees_one() -> None:
    assert "trio" in loaded_by("import actors.ref")


def test_the_daemon_loads_structlog_without_rich() -> None:
    start = "from aegis.cli.up import without_rich\nwith without_rich(): import aegis.app"
    loaded = loaded_by(start)
    assert "structlog" in loaded
    assert "rich" not in loaded


PACKAGE_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("pypi", "python", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "npmjs", "com"),
        ("registry", "yarnpkg", "com"),
    )
]
"""Put together here, so that this file does not name them either."""


def hosts_named_in(text: bytes) -> list[str]:
    return [host for host in PACKAGE_HOSTS if host.encode() in text.lower()]


def project_files() -> Iterator[Path]:
    """The files of the project: what git tracks or would; in an unpacked sdist, what it holds."""
    if not (ROOT / ".git").exists():
        return files_not_ignored(ROOT)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return (ROOT / name.decode() for name in listed.split(b"\0") if name)


def files_not_ignored(directory: Path) -> Iterator[Path]:
    """All files but those that the ``.gitignore`` of ``directory`` names, without asking git."""
    lines = (directory / ".gitignore").read_text().split()
    ignored = [line.rstrip("/") for line in lines]
    for path in sorted(directory.iterdir()):
        if any(fnmatch.fnmatch(path.name, pattern) for pattern in ignored):
            continue
        yield from (path,) if path.is_file() else filter(Path.is_file, path.rglob("*"))


def test_what_a_checkout_makes_is_no_file_of_the_project_without_git_either(
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitignore").write_text(".venv/\n*.pyc\n")
    for name in (".venv/bin/ruff", "tests/test_it.py", "README.md", "old.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = {str(each.relative_to(tmp_path)) for each in files_not_ignored(tmp_path)}
    assert found == {".gitignore", "README.md", "tests/test_it.py"}


def test_no_file_names_the_host_of_a_package_index() -> None:
    found = {
        str(path): hosts_named_in(path.read_bytes()) for path in project_files() if path.is_file()
    }
    assert len(found) > 20
    assert {path: hosts for path, hosts in found.items() if hosts} == {}


def test_the_search_for_hosts_finds_one() -> None:
    for host in PACKAGE_HOSTS:
        assert hosts_named_in(f"see https://{host.upper()}/simple".encode()) == [host]
