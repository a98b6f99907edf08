"""The size of both packages by subject, beside a budget; names that several classes have.

    just house               the sources
    just house --journeys    also the code that four journeys enter in a daemon

The budgets are hints where to look, in lines. Lines of code are those without blank lines,
comments, docstrings and imports; a comment counts once for each of its lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

PRIMITIVES = "inboxes/ requests/ queues/ groups/ canvases/ workflows/ workspaces/"

SUBJECTS = {
    "actors": (4_200, "/actors/"),
    "nodes, remote terminals": (
        5_500,
        "/actors/nodes/ nodes/ node_key.py terminals/remote/ terminals/directory/hosting.py"
        " terminals/directory/moving.py terminals/directory/placed_subtrees.py"
        " terminals/directory/placement.py cli/node.py protocol/nodes.py configuration/nodes.py",
    ),
    "journal": (3_000, "journal/"),
    "state, keys, trust, escaping": (
        2_400,
        "state/ keyring.py trust.py peers.py path_text.py shown_text.py hidden_urls.py"
        " json_bounds.py",
    ),
    "doctor": (900, "doctor/ examination.py"),
    "processes": (3_200, "processes/ limits.py"),
    "terminals": (12_000, "terminals/"),
    "agents, life cycle": (14_000, "agents/ lifecycle/ turns/"),
    "inboxes … workspaces": (10_500, f"{PRIMITIVES} history/"),
    "protocol, configuration": (7_200, "protocol/ configuration/"),
    "servers": (6_000, "servers/"),
    "client": (3_800, "client/"),
    "cli": (4_500, "cli/"),
    "tui": (7_500, "tui/"),
    "telegram": (2_600, "telegram/"),
    "web push": (1_000, "push/"),
    "editors": (1_200, "acp/"),
    "app, life of the process": (
        1_400,
        "app.py daemon.py daemon_process.py lifetime.py coordination.py ready_text.py"
        " settings.py program.py entry/ __init__.py errors.py faults.py clock.py names.py"
        " directories.py following.py publishing.py",
    ),
}
"""The budget of each subject in lines, and its files and directories, within aegis/ or absolute.

A longer path takes its files out of a shorter one. Files of aegis/ itself are listed one by one:
one that is new has no subject until it is written here.
"""

BUDGET = 88_000
"""Of all subjects, in lines."""

ENTITIES = {name: f"{name}/" for name in PRIMITIVES.replace("/", "").split()} | {
    "roster of agents": "agents/directory/",
    "chat": "telegram/",
    "browsers that are notified": "push/",
    "page keys": "servers/access/pages.py",
    "subscribers": "terminals/wakes/",
    "nodes": "nodes/ terminals/remote/",
}
"""The paths of each durable entity: its ledger, rules, actors and followers."""

SHARED_NAMES = (
    (
        "Daemon",
        "aegis/client/nouns/daemon.py aegis/daemon.py",
        "the daemon as a noun of the client, and the actor that answers its calls",
    ),
    (
        "Gap",
        "actors/tree.py aegis/client/stream_kinds.py aegis/protocol/streams.py",
        "the part of a stream that a slow reader missed: of the tree, in the client, on the wire",
    ),
    (
        "GroupReplies",
        "aegis/protocol/groups.py aegis/workflows/results.py",
        "the replies of a group: on the wire, and as a workflow gets them",
    ),
    (
        "Inbox",
        "aegis/inboxes/inbox.py aegis/protocol/resources.py",
        "the actor, and the document that clients read of it",
    ),
    (
        "Keyring",
        "aegis/daemon.py aegis/keyring.py",
        "the class, and its protocol where the import law forbids to import it",
    ),
    (
        "Plan",
        "actors/faults.py aegis/protocol/agent_events.py",
        "two meanings, both public: the plan of faults of a test, and an agent's plan on the wire",
    ),
    (
        "Terminal",
        "aegis/terminals/front/terminal.py aegis/workflows/child/engine.py",
        "the actor, whose name the tree shows, and the terminal of a workflow",
    ),
)
"""The names that several classes may have: the name, the files of the classes, and the reason."""

BLOCKING, NOUNS = "aegis/client/blocking/", "aegis/client/nouns/"

LAYOUT = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENDMARKER, tokenize.COMMENT),
}


class Size(NamedTuple):
    """The size of one file, or the sum of several."""

    files: int = 0
    lines: int = 0
    code: int = 0
    classes: int = 0
    functions: int = 0
    comments: int = 0


def sources() -> dict[str, str]:
    """Return the text of each file of both packages, by its path such as ``aegis/app.py``."""
    paths = [path for package in ("actors", "aegis") for path in (ROOT / package).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(paths)}


def size_of(text: str) -> Size:
    """Measure one file."""
    nodes = list(ast.walk(ast.parse(text)))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    code = lines_of((each.start[0], each.end[0]) for each in tokens if each.type not in LAYOUT)
    others = [node for node in nodes if isinstance(node, ast.stmt) and is_no_code(node)]
    return Size(
        files=1,
        lines=text.count("\n"),
        code=len(code - lines_of((each.lineno, each.end_lineno or 0) for each in others)),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        comments=sum(each.type == tokenize.COMMENT for each in tokens),
    )


def lines_of(spans: Iterable[tuple[int, int]]) -> set[int]:
    """Return the numbers of the lines in spans from a first line to a last."""
    return {line for first, last in spans for line in range(first, last + 1)}


def is_no_code(node: ast.stmt) -> bool:
    """Return whether it is an import, or a docstring of a module, class, function or field."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return isinstance(node.value.value, str)
    return isinstance(node, ast.Import | ast.ImportFrom)


def fit(file: str, paths: str) -> int:
    """Return the length of the longest of ``paths`` that ``file`` is or is in, else 0."""
    absolute = [path[1:] if path[0] == "/" else f"aegis/{path}" for path in paths.split()]
    fitting = [path for path in absolute if f"{file}/".startswith(path.removesuffix("/") + "/")]
    return max(map(len, fitting), default=0)


def subjects_of(file: str) -> list[str]:
    """Return the subjects that fit best: one, if each file has its place."""
    fits = {name: fit(file, paths) for name, (_, paths) in SUBJECTS.items()}
    return [name for name, length in fits.items() if length and length == max(fits.values())]


def report(texts: Mapping[str, str]) -> str:
    """Return the tables of sizes, and the repeated names."""
    sizes = {file: size_of(text) for file, text in texts.items()}
    head = ("files", "lines", "code", "classes", "functions", "code/comment", "budget")

    def row(name: str, files: Iterable[str], budget: int | None = None) -> list[str]:
        total = Size(*map(sum, zip(Size(), *(sizes[file] for file in files), strict=True)))
        ratio = f"{total.code / total.comments:.0f}" if total.comments else "-"
        counts = [f"{count:,}" for count in total[:-1]]
        return [name, *counts, ratio, "" if budget is None else f"{budget:,}"]

    by_subject = [
        row(name, [file for file in sizes if name in subjects_of(file)], budget)
        for name, (budget, _) in SUBJECTS.items()
    ]
    by_entity = [
        row(name, [file for file in sizes if fit(file, paths)]) for name, paths in ENTITIES.items()
    ]
    tables = (
        table(("subject", *head), [*by_subject, row("all", sizes, BUDGET)]),
        table(("entity", *head), by_entity),
    )
    return "\n\n".join((*tables, report_of_names(texts)))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Align rows below their head: the first column left, the others right."""
    first, *others = zip(head, *rows, strict=True)
    width = max(map(len, first))
    columns = [[cell.ljust(width) for cell in first]]
    columns += [[cell.rjust(max(map(len, column))) for cell in column] for column in others]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def files_of_classes(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the files of the classes with each name.

    A class in a class has the name of both, such as ``Rail.Chosen``. The blocking twin of a noun of
    the client is left out: it is the same noun.
    """
    files: dict[str, list[str]] = {}
    for file, text in texts.items():
        for name in names_of_classes(ast.parse(text)):
            files.setdefault(name, []).append(file)
    for found in files.values():
        for file in [each for each in found if each.startswith(BLOCKING)]:
            if file.replace(BLOCKING, NOUNS) in found:
                found.remove(file)
    return files


def names_of_classes(node: ast.AST, outer: str = "") -> Iterator[str]:
    """Yield the names of the classes in a module, or below a node of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield f"{outer}{child.name}"
            yield from names_of_classes(child, f"{outer}{child.name}.")
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from names_of_classes(child, outer)


def repeated_names(found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the names of ``found`` with several files, without those of ``SHARED_NAMES``."""
    shared = {name: files.split() for name, files, _ in SHARED_NAMES}
    return {
        name: found[name]
        for name in sorted(found)
        if len(found[name]) > 1 and not set(found[name]) <= set(shared.get(name, ()))
    }


def report_of_names(texts: Mapping[str, str]) -> str:
    """Return the names that several classes have, those that may with the reason."""
    repeated = repeated_names(files_of_classes(texts))
    lines = [f"names that several classes have: {len(repeated)}"]
    lines += [f"{name}: {' '.join(files)}" for name, files in repeated.items()]
    lines += [f"names that several classes may have: {len(SHARED_NAMES)}"]
    lines += [f"{name}: {reason} ({files})" for name, files, reason in SHARED_NAMES]
    wrap = partial(textwrap.fill, width=100, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(map(wrap, lines))


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(prog="just house", description=__doc__.partition("\n")[0])
    parser.add_argument("--journeys", action="store_true", help="trace four journeys in a daemon")
    given = parser.parse_args()
    print(report(sources()))  # noqa: T201
    if given.journeys:
        from tests.journeys import trace_all

        rows = [[name, *(f"{count:,}" for count in each)] for name, each in trace_all().items()]
        print(f"\n{table(('journey', 'functions', 'files', 'classes', 'messages'), rows)}")  # noqa: T201


if __name__ == "__main__":
    main()
