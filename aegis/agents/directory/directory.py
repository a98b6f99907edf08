"""``AgentDirectory``: the actor that spawns, lists, restores and closes agent sessions.

Commands on a session go to its actor by the directory, which checks the caller's rights. The roster
of sessions is one ledger; each session has its own transcript.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from actors import Actor, ActorError, ChildSpec, Down, Ref, Reply, Request, Restart, SupervisorSpec
from actors.errors import root_cause
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.roster import MAX_SESSIONS, Member, Roster, opened_line
from aegis.agents.sessions.handles import new_handle, refuse_handle
from aegis.agents.sessions.profiles import Profile
from aegis.agents.sessions.rights import refuse_profile, refuse_reach
from aegis.agents.sessions.session import AgentSession, ResumeAgent
from aegis.agents.sessions.status import Identity
from aegis.clock import utc_now
from aegis.errors import AegisError, Forbidden, InvalidRequest, StorageError, Unavailable
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.reader import LedgerReader
from aegis.path_text import text_of_path
from aegis.protocol import agents as api
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import name_key

log = structlog.get_logger("aegis.agents")

SHOW_S = 2.0
"""Seconds that a session has to report its state for a list."""
