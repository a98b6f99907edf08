"""The parts of the supervision tree that are queues, canvases, groups and workflows."""

from __future__ import annotations

import os
import socket
from functools import partial

import attrs

from actors import ChildSpec, SupervisorSpec
from aegis.agents.directory.programs import Programs
from aegis.canvases.desk import CanvasDesk
from aegis.canvases.watcher import CanvasWatcher
from aegis.configuration.sections import Configuration
from aegis.groups.desk import GroupDesk
from aegis.history.desk import HistoryDesk
from aegis.history.sources import EndedKind
from aegis.inboxes.history import MessageEntries, archived_message
from aegis.journal.archive import Keep
from aegis.journal.flusher import Flusher
from aegis.path_text import path_of_text, text_of_path
from aegis.queues import tasks, views
from aegis.queues.desk import QueueDesk
from aegis.queues.tasks import QueueSettings
from aegis.requests import records
from aegis.requests.history import archived_entry
from aegis.settings import DaemonSettings
from aegis.state.root import StatePaths
from aegis.trust import trust_programs
from aegis.workflows import runs
from aegis.workflows.desk import WorkflowDesk, WorkflowSettings

KINDS = (
    EndedKind("task", "queues", tasks.KIND, views.archived_entry),
    EndedKind("request", "requests", records.KIND, archived_entry),
    EndedKind("run", "workflows", runs.KIND, runs.archived_entry),
)
"""The kinds of ended rows that a search of the history finds, besides commands."""


def keep_of(configuration: Configuration) -> Keep:
    """Return how long ended rows are kept in tables."""
    return Keep(**attrs.asdict(configuration.keep))


def queue_settings(configuration: Configuration) -> dict[str, QueueSettings]:
    """Return the settings of the configured queues, by name."""
    found = {}
    for name, section in configuration.queues.items():
        agent = section.agent or configuration.default_agent or ""
        account = configuration.agents[agent].provider if agent in configuration.agents else agent
        values = {**attrs.asdict(section), "agent": agent}
        found[name] = QueueSettings(name=name, account=account, **values)
    return found


def canvas_children(
    state: StatePaths, *, flusher: Flusher, configuration: Configuration
) -> tuple[SupervisorSpec | ChildSpec, ...]:
    """Return the children for canvases. The desk is the last: it starts canvases."""
    root = os.path.realpath(state.root)
    directories = configuration.canvases.directories
    return (
        SupervisorSpec(name="canvases", dynamic=True),
        ChildSpec.of("canvas-watcher", CanvasWatcher, flusher=flusher),
        ChildSpec.of(
            "canvas-desk",
            CanvasDesk,
            root=root,
            directory=state.canvases,
            directories=tuple(resolved(each, root) for each in directories),
            archive=state.archive,
            keep=keep_of(configuration),
            supervisor="root/canvases",
            flusher=flusher,
        ),
    )


def resolved(directory: str, root: str) -> str:
    """Return the path of a configured directory, relative to ``root``, without links."""
    path = os.path.expanduser(path_of_text(directory))  # noqa: PTH111
    return os.path.realpath(os.path.join(root, path))  # noqa: PTH118


def coordination_children(
    state: StatePaths, flusher: Flusher, programs: Programs, settings: WorkflowSettings | None
) -> tuple[SupervisorSpec | ChildSpec, ...]:
    """Return the children of queues, canvases, groups and, with ``settings``, of workflows."""
    queues = ChildSpec.of(
        "queues",
        QueueDesk,
        directory=state.queues,
        settings=queue_settings(programs.configuration),
        archive=state.archive,
        flusher=flusher,
        rights=programs.messages,
        keep=keep_of(programs.configuration),
    )
    history = ChildSpec.of(
        "history",
        HistoryDesk,
        terminals=state.terminals,
        inboxes=state.inboxes,
        archive=state.archive,
        kinds=KINDS,
        messages_in=MessageEntries,
        archived_message=archived_message,
        handles=programs.names,
        flusher=flusher,
    )
    groups = ChildSpec.of(
        "groups",
        GroupDesk,
        directory=state.groups,
        presets=programs.configuration.groups.presets,
        archive=state.archive,
        keep=keep_of(programs.configuration),
        flusher=flusher,
        rights=programs.messages,
        shown=programs.names.shown,
    )
    canvases = canvas_children(state, flusher=flusher, configuration=programs.configuration)
    if settings is None:
        return (queues, history, groups, *canvases)
    return (
        queues,
        history,
        groups,
        *canvases,
        SupervisorSpec(name="workflow-processes", dynamic=True),
        ChildSpec.of(
            "workflows",
            WorkflowDesk,
            directory=state.workflows,
            archive=state.archive,
            keep=keep_of(programs.configuration),
            settings=settings,
            supervisor="root/workflow-processes",
            flusher=flusher,
            scan=programs.scan,
            messages=programs.messages,
            refuse=programs.rights.refuse,
            withhold=programs.withheld_from,
        ),
    )


def workflow_settings(
    settings: DaemonSettings,
    state: StatePaths,
    configuration: Configuration,
) -> WorkflowSettings:
    """Return what workflows can be, from the configuration and the trusted plugins."""
    return WorkflowSettings(
        root=text_of_path(state.root),
        directories=configuration.plugin_dirs,
        trusted=settings.plugins,
        digest=settings.digest,
        config={
            "root": text_of_path(state.root),
            "agents": [*configuration.agents],
            "default_agent": configuration.default_agent,
            "queues": {
                each.name: {"agent": each.agent, "max_parallel": each.max_parallel}
                for each in queue_settings(configuration).values()
            },
        },
        host=socket.gethostname(),
        remember=partial(trust_programs, state),
    )
