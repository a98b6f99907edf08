"""The messages, answers and errors that are exchanged between processes, by class name. Pure.

Both sides run the same release, so a name means the same class on both. Other classes are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from actors import errors as runtime_errors
from actors.codec import structure, unstructure
from actors.errors import ActorError, AskError, CodecError, MisuseError, RemoteFailure
from actors.nodes.links.packets import Body

_PLAIN = (str, bytes, int, float, bool, type(None))


class Vocabulary:
    """The classes ``messages`` (and answers) and ``errors`` by their names."""

    def __init__(self, messages: Iterable[type], errors: Iterable[type[Exception]] = ()) -> None:
        self._messages = _by_name(messages)
        self._errors = _by_name((*_runtime_errors(), *errors))

    @property
    def classes(self) -> frozenset[type]:
        """The messages and answers."""
        return frozenset(self._messages.values())

    def body_of(self, message: object) -> Body:
        """Return the transport form of ``message``. Raises ``MisuseError`` for any other class."""
        if type(message) in _PLAIN:
            return Body("", message)
        kind = type(message).__name__
        if self._messages.get(kind) is not type(message):
            raise MisuseError(f"{kind} cannot go to another process: it is not in the vocabulary")
        return Body(kind, unstructure(message))

    def message_of(self, body: Body) -> Any:
        """Return the message in ``body``. Raises ``CodecError`` if it is malformed."""
        if not body.kind:
            if type(body.document) not in _PLAIN:
                raise CodecError("an answer without a class must be text, bytes, a number or null")
            return body.document
        cls = self._messages.get(body.kind)
        if cls is None:
            raise CodecError(f"{body.kind!r} is not in the vocabulary")
        return structure(cls, body.document)

    def failure_of(self, error: Exception) -> tuple[str, str, str]:
        """Return the nearest known class of ``error``, its text, and its path."""
        # A text may contain a file name that is not valid UTF-8: such bytes are replaced.
        path = error.path if isinstance(error, AskError) else ""
        for cls in type(error).__mro__:
            if self._errors.get(cls.__name__) is cls:
                return cls.__name__, _sendable(str(error)), path
        return RemoteFailure.__name__, _sendable(f"{type(error).__name__}: {error}"), path

    def error_of(self, kind: str, text: str, path: str) -> Exception:
        """Return the error of this class, text and path."""
        cls: type[Exception] = self._errors.get(kind, RemoteFailure)
        return cls(text, path=path) if issubclass(cls, AskError) else cls(text)


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _runtime_errors() -> list[type[Exception]]:
    found = vars(runtime_errors).values()
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, ActorError)]


def _by_name(classes: Iterable[Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for cls in classes:
        if known.setdefault(cls.__name__, cls) is not cls:
            raise MisuseError(f"two classes of one vocabulary are called {cls.__name__}")
    return known
