"""The files that open sessions have changed, and which of them two sessions have changed. Pure.

Only changes that an agent makes with a tool for files are seen, not those of its shell commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from aegis.protocol import agent_events as ev
from aegis.protocol.agent_states import EditConflict

MAX_FILES = 4_096
"""Files whose editors are known; the one that was not changed for longest is dropped."""

MAX_CONFLICTS = 20
"""Files of one session that others have changed too; the oldest is dropped."""

MAX_CALLS = 256
"""Calls of one session that run."""

MAX_CALL_FILES = 20


class EditCalls:
    """The running calls of one session that change files."""

    def __init__(self) -> None:
        self._paths: dict[str, list[str]] = {}

    def take(self, event: ev.AgentEvent) -> list[str]:
        """Take an event of the agent; return the paths of the files that have been changed."""
        match event:
            case ev.ToolUse(id=call, kind="edit"):
                if call in self._paths or len(self._paths) < MAX_CALLS:
                    self._paths[call] = [*dict.fromkeys(_paths_in(event))][:MAX_CALL_FILES]
            case ev.ToolResult(id=call, is_error=is_error):
                paths = self._paths.pop(call, [])
                return [] if is_error else paths
            case ev.Result():
                self._paths.clear()
        return []


def _paths_in(use: ev.ToolUse) -> Iterator[str]:
    edits = use.input.get("edits")
    parts = [use.input, *(edits if isinstance(edits, list) else [])]
    for part in parts:
        for name in ("file_path", "notebook_path", "path"):
            path = part.get(name) if isinstance(part, dict) else None
            if isinstance(path, str) and path and "\0" not in path:
                yield path


@attrs.define
class _Editor:
    """A session: the ``name`` function returns its handle.

    ``conflicts`` are its files with the ids of other sessions, ``unsaid`` those for its next turn,
    and ``said`` those of the note that was taken last.
    """

    name: Callable[[], str]
    conflicts: dict[str, dict[str, None]] = attrs.field(factory=dict)
    unsaid: dict[str, None] = attrs.field(factory=dict)
    said: dict[str, None] = attrs.field(factory=dict)

    def add(self, path: str, other: str) -> bool:
        """Note that another session has changed a file; return whether that is new."""
        others = self.conflicts.setdefault(path, {})
        is_new = other not in others
        others[other] = None
        if is_new:
            self.unsaid[path] = None
        while len(self.conflicts) > MAX_CONFLICTS:
            oldest = next(iter(self.conflicts))
            del self.conflicts[oldest]
            self.unsaid.pop(oldest, None)
        return is_new


class EditedFiles:
    """The changed files of all sessions of a daemon since it was started, by their real paths."""

    def __init__(self) -> None:
        self._editors: dict[str, _Editor] = {}
        self._files: dict[str, dict[str, None]] = {}

    def note(self, session: str, name: Callable[[], str], path: str) -> list[str]:
        """Note the change of a file; return the sessions with a new conflict.

        ``name`` returns the current handle of ``session``, an id. ``path`` has no links.
        """
        own = self._editors.setdefault(session, _Editor(name))
        editors = self._files.pop(path, {})
        self._files[path] = editors
        if len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]
        others = [each for each in editors if each != session]
        editors[session] = None
        changed = [each for each in others if self._editors[each].add(path, session)]
        for other in others:
            own.add(path, other)
        return [session, *changed] if changed else []

    def of(self, session: str) -> list[EditConflict]:
        """Return the files of a session that others have changed too."""
        editor = self._editors.get(session)
        if editor is None or not editor.conflicts:
            return []
        return [
            EditConflict(path=path, handles=self._names(others))
            for path, others in editor.conflicts.items()
        ]

    def take_note(self, session: str) -> str:
        """Return what the next turn of a session begins with, once; empty: nothing."""
        editor = self._editors.get(session)
        if editor is None or not editor.unsaid:
            return ""
        lines = [
            f"- {path!r}: {', '.join(self._names(editor.conflicts[path]))}"
            for path in editor.unsaid
        ]
        editor.said, editor.unsaid = editor.unsaid, {}
        head = "These files that you changed were changed by other agents too; read them again:"
        return "\n".join(["> from substrate", head, *lines])

    def return_note(self, session: str) -> None:
        """Have the next turn begin with the note that was taken last: its turn was not sent."""
        editor = self._editors.get(session)
        if editor is not None:
            again = {**editor.said, **editor.unsaid}
            editor.unsaid = {path: None for path in again if path in editor.conflicts}
            editor.said = {}

    def close(self, session: str) -> None:
        """Forget a session that is closed."""
        if self._editors.pop(session, None) is None:
            return
        for path in [path for path, editors in self._files.items() if session in editors]:
            del self._files[path][session]
        for editor in self._editors.values():
            for path in [*editor.conflicts]:
                editor.conflicts[path].pop(session, None)
                if not editor.conflicts[path]:
                    del editor.conflicts[path]
                    editor.unsaid.pop(path, None)

    def _names(self, sessions: dict[str, None]) -> list[str]:
        return [self._editors[each].name() for each in sessions]
