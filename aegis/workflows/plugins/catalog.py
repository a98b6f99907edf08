"""``Catalog``: the workflows that can be run, from the trusted plugin files.

Each file is imported by a process of its own, once for each of its contents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.errors import InvalidRequest, NotFound, Unavailable
from aegis.limits import in_thread_or_here
from aegis.names import did_you_mean, shorten
from aegis.path_text import path_of_text
from aegis.processes.guarded.frames import Frame
from aegis.processes.guarded.line_process import (
    LineProcess,
    LineSettings,
    ProcessFailed,
    start_process,
)
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.naming import is_name
from aegis.protocol.workflows import (
    ParameterInfo,
    PluginProblem,
    RunWorkflow,
    WorkflowDefinition,
)
from aegis.shown_text import escape_line
from aegis.workflows.cookie import cookie_of_workflow
from aegis.workflows.plugins.arguments import WorkflowParameter, problem_with
from aegis.workflows.plugins.found import PluginFile, find_plugins
from aegis.workflows.process import end_when_over, launch_of

IMPORT_S = 30.0
"""Seconds that the import of a plugin may take."""

AT_ONCE = 4
"""Plugins that are imported at the same time."""

MAX_SHOWN_CHARS = 500

NOT_TRUSTED = (
    "it has changed since you trusted it, or is new: look at it, then trust it with aegis-actors "
    "workflow trust"
)


@attrs.frozen(kw_only=True)
class Definition:
    """A workflow that can be run; ``stem`` is the name of its plugin."""

    name: str
    stem: str
    file: str
    line: int
    doc: str
    parameters: Sequence[WorkflowParameter]

    def info(self) -> WorkflowDefinition:
        """Return it as clients see it."""
        shown = [
            ParameterInfo(name=each.name, type=each.shown, required=each.required)
            for each in self.parameters
        ]
        return WorkflowDefinition(
            name=self.name, file=self.file, line=self.line, doc=self.doc, parameters=shown
        )


@attrs.frozen
class Found:
    """The workflows by name, the problems of plugins, and the trusted files by their names."""

    workflows: Mapping[str, Definition]
    problems: Sequence[PluginProblem]
    files: Mapping[str, Sequence[str]]

    def checked(self, request: RunWorkflow) -> Definition:
        """Return the workflow of a request. Raises ``NotFound``, ``InvalidRequest``."""
        found = self.workflows.get(request.name)
        if found is None:
            raise NotFound(self._sentence(request.name))
        problem = problem_with(found.parameters, request.kwargs)
        if problem is not None:
            raise InvalidRequest(f"workflow {found.name!r}: {problem}")
        return found

    def _sentence(self, name: str) -> str:
        hint = did_you_mean(name, self.workflows, "aegis_workflow_list lists them")
        if not self.workflows and not self.problems:
            hint = "no plugin has one: write it into .aegis/plugins"
        sentence = f"there is no workflow {name!r}; {hint}"
        if self.problems:
            first = self.problems[0]
            others = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            problem = shorten(first.problem, MAX_SHOWN_CHARS)
            sentence += f"; the plugin {first.file} has a problem{others}: {problem}"
        return sentence


class Catalog:
    """The plugins in ``directories`` of ``root`` (text), of which ``trusted`` ones are imported."""

    def __init__(
        self,
        *,
        root: str,
        directories: Sequence[str],
        trusted: Sequence[PluginFile],
        scan: ProcessScan,
    ) -> None:
        self._root = root
        self._directories = directories
        self._trusted = {(each.path, each.digest) for each in trusted if each.digest}
        self._scan = scan
        self._described: dict[tuple[str, str], Frame] = {}
        self._lock = trio.Lock()
        self._imports = 0

    async def files(self) -> tuple[PluginFile, ...]:
        """Return the plugin files as they are now."""
        root = Path(path_of_text(self._root))
        return await in_thread_or_here(partial(find_plugins, root, self._directories))

    def trust(self, files: Sequence[PluginFile]) -> None:
        """Trust these files, and no others."""
        self._trusted = {(each.path, each.digest) for each in files if each.digest}

    async def find(self) -> Found:
        """Return the workflows of the files as they are now; import those that are new."""
        files = await self.files()
        usable = [each for each in files if (each.path, each.digest) in self._trusted]
        named = {each.stem: [each.path, each.digest] for each in usable}
        async with self._lock:
            new = await self._import([each for each in usable if not self._is_known(each)], named)
        problems = [
            PluginProblem(file=escape_line(each.shown), problem=each.problem or NOT_TRUSTED)
            for each in files
            if each not in usable
        ]
        workflows: dict[str, Definition] = {}
        for each in usable:
            shown = escape_line(each.shown)
            described = new.get(each.path) or self._described[each.path, each.digest]
            found = _take(each, described, workflows)
            problems += [PluginProblem(file=shown, problem=problem) for problem in found]
        return Found(workflows, problems, named)

    def _is_known(self, file: PluginFile) -> bool:
        return (file.path, file.digest) in self._described

    async def _import(
        self, files: Sequence[PluginFile], named: Mapping[str, Any]
    ) -> dict[str, Frame]:
        """Return the descriptions of plugins by their paths; keep those that will not change."""
        limit = trio.CapacityLimiter(AT_ONCE)
        found: dict[str, Frame] = {}

        async def one(file: PluginFile) -> None:
            async with limit:
                found[file.path] = described = await self._describe(file, named)
            if "kind" in described:  # its process has said so; a killed one is started again
                self._described[file.path, file.digest] = described

        async with trio.open_nursery() as nursery:
            for each in files:
                nursery.start_soon(one, each)
        return found

    async def _describe(self, file: PluginFile, named: Mapping[str, Any]) -> Frame:
        """Return the description of a plugin, from a process that imports it."""
        self._imports += 1
        cookie = cookie_of_workflow(self._root, f"import-{file.stem[:40]}", None, self._imports)
        over = trio.Event()
        try:
            process = await start_process(
                launch_of(self._root, cookie), LineSettings(), self._scan, over
            )
        except Unavailable as error:
            return {"problem": f"it cannot be imported: {error}"}
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(process.run)
                nursery.start_soon(end_when_over, process, over)
                with trio.move_on_after(IMPORT_S) as waiting:
                    frame = await _answer(process, file, named)
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await process.end_at_once()
        if waiting.cancelled_caught:
            return {"problem": f"its import did not end within {IMPORT_S:g} s"}
        return frame


async def _answer(process: LineProcess, file: PluginFile, named: Mapping[str, Any]) -> Frame:
    process.put({"kind": "describe", "plugin": file.stem, "files": dict(named)})
    try:
        while (frames := await process.read_whole()) is not None:
            for frame in frames:
                if frame.get("kind") == "described":
                    return frame
    except ProcessFailed as error:
        return {"problem": str(error)}
    await process.close(0)
    problem = {"problem": f"its import did not end: {process.end_reason('the process')}"}
    has_exited = process.exit_code is not None and process.exit_code >= 0
    return {"kind": "described", **problem} if has_exited else problem


def _take(file: PluginFile, described: Frame, workflows: dict[str, Definition]) -> list[str]:
    """Add the workflows of a file; return its problems."""
    if "problem" in described:
        return [escape_line(str(described["problem"]))[:MAX_SHOWN_CHARS]]
    problems = []
    for each in described.get("workflows", []):
        name, line = str(each["name"]), int(each["line"])
        problem = each.get("problem")
        if not is_name(name):
            problem = "a workflow's name begins with a letter, and has at most 64 characters"
        elif name in workflows:
            problem = f"{workflows[name].file} has a workflow of this name: rename one of them"
        if problem is not None:
            problems.append(f"line {line}: {name}: {escape_line(str(problem))}")
            continue
        workflows[name] = Definition(
            name=name,
            stem=file.stem,
            file=escape_line(file.shown),
            line=line,
            doc=str(each["doc"]),
            parameters=[_parameter(one) for one in each["parameters"]],
        )
    return problems


def _parameter(described: Mapping[str, Any]) -> WorkflowParameter:
    return WorkflowParameter(
        name=str(described["name"]),
        type=described["type"],
        shown=str(described["shown"]),
        required=bool(described["required"]),
    )
