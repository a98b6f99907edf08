"""The keys of one root: the operator's token and the secret of each handle's session.

They are made once, kept in ``keys.json`` (mode 0600) and survive restarts, so that clients once
configured continue to work; ``token rotate`` voids them. A secret has 256 random bits. It is looked
up by digest, compared in constant time, and appears neither in a ``repr`` nor in a log.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import attrs

from aegis.errors import NotFound, StartupError, Unavailable
from aegis.names import check_handle, shorten
from aegis.protocol.naming import is_name, name_key
from aegis.protocol.tool_sets import DEFAULT
from aegis.servers.calls import OPERATOR, Identity
from aegis.state.sealing import Seal, Seals, document_fits, sealed_document
from aegis.state.state_files import FILE_MODE, open_safely, write_safely

KEYS_FILE = "keys.json"
KEYS_VERSION = 1
SECRET_BYTES = 32
MAX_SESSIONS = 10_000


def new_secret() -> str:
    """Return a new secret of 256 random bits: 43 letters, digits, ``-`` and ``_``, as in URLs."""
    return secrets.token_urlsafe(SECRET_BYTES)


@attrs.frozen
class Secrets:
    """The content of the file: the operator's token, and the session secrets by handle.

    ``tools`` has the sets of tools that were chosen for sessions; the others offer the default set.
    ``revoked`` are handles whose secret is deleted and whose questions are not withdrawn yet.
    """

    operator: str = attrs.field(repr=False, factory=new_secret)
    sessions: dict[str, str] = attrs.field(repr=False, factory=dict)
    tools: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    revoked: tuple[str, ...] = ()


def encode(held: Secrets, seal: Seal | None = None) -> bytes:
    """Return the content of the file for these keys."""
    document = {"version": KEYS_VERSION, "operator": held.operator, "sessions": held.sessions}
    if held.tools:
        document["tools"] = held.tools
    if held.revoked:
        document["revoked"] = held.revoked
    return json.dumps(sealed_document(document, seal), indent=1).encode() + b"\n"


def decode(text: bytes, seal: Seal | None = None) -> Secrets:
    """Parse the file's content. Raises ``ValueError`` with the reason; it contains no secret."""
    try:
        document = json.loads(text)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(document, dict) or document.get("version") != KEYS_VERSION:
        raise ValueError(f"it is not of version {KEYS_VERSION}")
    if not document_fits(document, seal):
        raise ValueError("it was not written by a daemon of this state")
    operator, sessions = document.get("operator"), document.get("sessions")
    if not _is_secret(operator) or not isinstance(sessions, dict):
        raise ValueError("the operator's token or the sessions are missing")
    for handle, secret in sessions.items():
        if not is_name(handle) or not _is_secret(secret):
            raise ValueError("a session has a bad handle or a short secret")
    revoked = document.get("revoked", [])
    if not isinstance(revoked, list) or not all(map(is_name, revoked)):
        raise ValueError("the revoked sessions are no list of handles")
    tools = _tools_in(document.get("tools", {}), sessions)
    return Secrets(operator, sessions, tools, tuple(revoked))


def _tools_in(found: object, sessions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    if not isinstance(found, dict) or not found.keys() <= sessions.keys():
        raise ValueError("the tools of sessions are not those of its sessions")
    for names in found.values():
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError("the tools of a session are no list of names")
    return {handle: tuple(names) for handle, names in found.items()}


@attrs.frozen
class _Table:
    """The lookup tables of the keys, replaced as a whole: a reader never sees half a change."""

    held: Secrets
    operator: bytes = attrs.field(repr=False)
    handles: dict[bytes, str] = attrs.field(repr=False)

    @classmethod
    def of(cls, held: Secrets) -> _Table:
        handles = {_digest(secret): name for name, secret in held.sessions.items()}
        return cls(held, _digest(held.operator), handles)


class Keys:
    """The keys of a root, looked up by secret. Safe to use from several threads.

    A method that changes the keys writes and syncs a file: call it in a thread. It raises
    ``OSError`` if the disk refuses, and then nothing has changed.
    """

    def __init__(self, path: Path, held: Secrets, seal: Seal | None = None) -> None:
        self.path = path
        self._seal = seal
        self._writing = threading.Lock()
        self._table = _Table.of(held)

    def __repr__(self) -> str:
        return f"Keys({str(self.path)!r}, {len(self.handles)} sessions)"

    @property
    def operator_token(self) -> str:
        """The bearer token of the operator."""
        return self._table.held.operator

    @property
    def handles(self) -> list[str]:
        """The handles that have a session, in alphabetical order."""
        return sorted(self._table.held.sessions, key=name_key)

    def tools(self, handle: str) -> tuple[str, ...]:
        """Return the sets of tools of the handle's session, the default unless some were chosen."""
        name = self._known(handle)
        return self._table.held.tools.get(name or "", DEFAULT)

    def session_secret(self, handle: str, tools: Sequence[str] | None = None) -> str:
        """Return the secret of the handle's session; create and store one if there is none.

        ``tools`` are the sets of tools from now on; None leaves them as they are, or the default.
        Handles are compared ignoring case. Raises ``InvalidRequest`` for an invalid handle,
        ``Unavailable`` beyond ``MAX_SESSIONS`` sessions.
        """
        check_handle(handle)
        with self._writing:
            name = self._known(handle)
            if name is None:
                return self._add_session(handle, tools)
            if tools is not None and tuple(tools) != self.tools(name):
                self._store(attrs.evolve(self._table.held, tools=self._tools_with(name, tools)))
            return self._sessions[name]

    def renew_token(self) -> Identity:
        """Replace the operator's token; return the identity whose key is void now."""
        with self._writing:
            self._store(attrs.evolve(self._table.held, operator=new_secret()))
        return OPERATOR

    def renew_session(self, handle: str) -> Identity:
        """Replace the handle's secret; return the identity whose key is void now.

        Raises ``NotFound`` if the handle has no session.
        """
        with self._writing:
            name = self._session_of(handle)
            self._store_sessions({**self._sessions, name: new_secret()})
        return _bound_to(name)

    def renew_all(self) -> list[Identity]:
        """Replace the token and each secret; return the identities whose keys are void now."""
        with self._writing:
            names = list(self._sessions)
            sessions = {name: new_secret() for name in names}
            self._store(attrs.evolve(self._table.held, operator=new_secret(), sessions=sessions))
        return [OPERATOR, *map(_bound_to, names)]

    @property
    def revoked(self) -> tuple[str, ...]:
        """The handles that ``remove_session`` has noted and ``drop_revoked`` has not dropped."""
        return self._table.held.revoked

    def remove_session(self, handle: str, *, is_noted: bool = False) -> Identity:
        """Delete the handle's secret; return the identity whose key is void now.

        ``is_noted``: the handle is ``revoked`` from then on, written with the same sync. Raises
        ``NotFound`` if the handle has no session.
        """
        with self._writing:
            name, held = self._session_of(handle), self._table.held
            left = {each: key for each, key in self._sessions.items() if each != name}
            tools = self._tools_with(name, DEFAULT)
            noted = (name,) if is_noted and name not in held.revoked else ()
            revoked = (*held.revoked, *noted)
            self._store(attrs.evolve(held, sessions=left, tools=tools, revoked=revoked))
        return _bound_to(name)

    def drop_revoked(self, handle: str) -> None:
        """Delete the note that the handle was revoked, if there is one."""
        with self._writing:
            held, key = self._table.held, name_key(handle)
            left = tuple(each for each in held.revoked if name_key(each) != key)
            if left != held.revoked:
                self._store(attrs.evolve(held, revoked=left))

    def identity_of_token(self, token: str) -> Identity | None:
        """Return the operator's identity if ``token`` is the operator's; else None."""
        if hmac.compare_digest(_digest(token), self._table.operator):
            return OPERATOR
        return None

    def identity_of_session(self, secret: str) -> Identity | None:
        """Return the identity that the session secret belongs to, or None."""
        # A lookup by digest: its duration reveals nothing about a secret.
        handle = self._table.handles.get(_digest(secret))
        return None if handle is None else _bound_to(handle)

    @property
    def _sessions(self) -> dict[str, str]:
        return self._table.held.sessions

    def _known(self, handle: str) -> str | None:
        if handle in self._sessions:
            return handle
        key = name_key(handle)
        return next((name for name in self._sessions if name_key(name) == key), None)

    def _session_of(self, handle: str) -> str:
        name = self._known(handle)
        if name is None:
            raise NotFound(
                f"handle {shorten(handle)!r} has no session; session_list names those that have one"
            )
        return name

    def _tools_with(self, name: str, tools: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the tools of all sessions with those of ``name`` replaced."""
        kept = {each: sets for each, sets in self._table.held.tools.items() if each != name}
        return kept if tuple(tools) == DEFAULT else {**kept, name: tuple(tools)}

    def _add_session(self, handle: str, tools: Sequence[str] | None) -> str:
        if len(self._sessions) + len(self.revoked) >= MAX_SESSIONS:
            raise Unavailable(
                f"{MAX_SESSIONS} sessions exist, which is the limit: revoke some first"
            )
        secret = new_secret()
        sessions = {**self._sessions, handle: secret}
        chosen = self._tools_with(handle, DEFAULT if tools is None else tools)
        self._store(attrs.evolve(self._table.held, sessions=sessions, tools=chosen))
        return secret

    def _store_sessions(self, sessions: dict[str, str]) -> None:
        self._store(attrs.evolve(self._table.held, sessions=sessions))

    def _store(self, held: Secrets) -> None:
        replace_file(self.path, encode(held, self._seal))
        self._table = _Table.of(held)


def _bound_to(handle: str) -> Identity:
    return Identity(handle=handle, operator=False)


def open_keys(state_dir: Path, seals: Seals | None = None) -> Keys:
    """Return the keys of the root with this state directory; create them if there are none.

    Without ``seals`` the file is not signed. Reads, and may write and sync, a file. Raises
    ``StartupError`` if the file is damaged or belongs to another user, or the disk refuses.
    """
    path = state_dir / KEYS_FILE
    seal = None if seals is None else seals.of(str(path))
    try:
        held = _read(path, seal)
        if held is None:
            held = Secrets()
            replace_file(path, encode(held, seal))
    except OSError as error:
        raise StartupError(f"cannot use {path}: {error.strerror}") from error
    except ValueError as error:
        raise StartupError(
            f"{path} is damaged ({error}); remove it to get new keys, which voids the old ones"
        ) from None
    return Keys(path, held, seal)


def replace_file(path: Path, content: bytes) -> None:
    """Replace ``path`` in one step, durably: a new file of mode 0600, synced, then renamed.

    The new file's name is fixed, so the leftover of a killed process is overwritten.
    """
    write_safely(str(path), content, durable=True)


def _read(path: Path, seal: Seal | None) -> Secrets | None:
    try:
        descriptor = open_safely(str(path), os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != FILE_MODE:
            os.fchmod(descriptor, FILE_MODE)
        return decode(file.read(), seal)


def _is_secret(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) >= 43 and value.isascii() and value.isprintable()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
