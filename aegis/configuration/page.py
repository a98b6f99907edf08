"""The reference page of the configuration, in Markdown. Pure.

``docs/reference/configuration.md`` is what ``python -m aegis.configuration.page`` prints.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable

from aegis.configuration.document import MAX_DEPTH
from aegis.configuration.sections import (
    MAX_BYTES,
    named_sections,
    sections,
    single_keys,
    top_names,
)
from aegis.configuration.setting import Key, keys_of

INTRODUCTION = """\
# Configuration

The daemon reads the file `.aegis.yaml` in its root. Every key is optional; a missing or an empty
file means the defaults.

```yaml
terminals:
  shell: fish
  cols: 120
  rows: 40
  timeout_s: 300
```

Check the file before you restart the daemon. [`config check`](cli.md#config-check) reads it as `up`
does and prints every value:

```
$ aegis-actors config check
read /srv/.aegis.yaml
key                       value     from
terminals.shell           fish      the file
terminals.cols            120       the file
terminals.rows            40        the file
terminals.raw_log_bytes   10000000  default
terminals.timeout_s       300       the file
nodes.workers             0         default
default_agent             -         default
limits.sessions           16        default
limits.spawn_depth        3         default
limits.spawns_per_hour    60        default
limits.messages_per_hour  200       default
limits.transcript_bytes   67108864  default
limits.usd_per_day        -         default
```

If the file has errors, `up` does not start. It prints one line for each error and exits with 2:

```
aegis-actors: /srv/.aegis.yaml line 3: terminals.cols must be a whole number from 2 to 1000, not 1
aegis-actors: /srv/.aegis.yaml line 9: there is no key 'terminal'; did you mean 'terminals'?
```

`up` reads the file once, at the start. A change takes effect at the next `up`.

A file that names a program (`terminals.shell`, `command` of a profile) is not used until you trust
it; nor is one that changes the environment of an agent, gives it more rights than `ask`, or has it
use the settings of its directory (`project_settings`). `up`
prints these keys and refuses to start until you pass `--trust`, once for each content of the file
([why](../security.md#state-that-is-not-yours)).

This page is generated: do not edit it, run
`python -m aegis.configuration.page > docs/reference/configuration.md`.
"""

EXAMPLES = {
    "queues": """\
```yaml
queues:
  build: {agent: builder, max_parallel: 2}
  review: {agent: reviewer, max_runtime_s: 3600}
```
""",
    "groups": """\
```yaml
groups:
  presets:
    reviewers: [reviewer, reviewer, builder]
```
""",
    "agents": """\
```yaml
agents:
  builder:
    provider: claude
    permission: write
    budget_usd: 5
  reviewer:
    provider: codex
    permission: read
    env: {OPENAI_API_KEY: $REVIEW_KEY}
  qwen:
    provider: acp
    command: [qwen, --acp]
    asking_mode: default
    permission: ask
default_agent: builder
```

A key or a password does not belong in this file. Set it in the daemon's environment, and name the
variable here: `$REVIEW_KEY` above. A session of `reviewer` is refused if the variable is not set. A
session gets the keys of its own provider and those that its profile names so, and no others.
""",
}

RULES = f"""\
## The file

- YAML in UTF-8, at most {MAX_BYTES // 1024} KiB, one document, at most {MAX_DEPTH} levels deep.
  Anchors, aliases, tags and repeated keys are refused.
- Unknown keys are errors. A section may be empty (`terminals:` alone).
- Write numbers in decimal digits. Other notations of YAML are refused, since they are easily
  misread (`0120` is eighty, `1:30` is ninety).
- Quote a text that YAML reads as another type (`no`, `on`, `5`, `2026-01-01`).
- The file names a program that runs as you. So it must belong to you or to root, and must not be
  writable by everybody.

The values are defaults: an argument of a call overrides them. A terminal that was open when the
daemon ended is restarted with the shell and the size that it had.
"""


def configuration_page() -> str:
    """Return the whole page, ending in a newline."""
    single, named, forms = single_keys(), named_sections(), sections()
    parts = [INTRODUCTION]
    for name in top_names():
        parts.append(f"## {name}\n")
        if name in single:
            parts += [*_table([single[name]]), ""]
            continue
        form = named.get(name) or forms[name]
        parts.append(f"{inspect.cleandoc(form.__doc__ or '')}\n")
        parts += [EXAMPLES[name]] if name in EXAMPLES else []
        parts += [*_table(keys_of(name, form)), ""]
    return "\n".join([*parts, RULES])


def _table(keys: Iterable[Key]) -> list[str]:
    head = "| key | value | default | description |\n|---|---|---|---|"
    return [head, *(_row(key) for key in keys)]


def _row(key: Key) -> str:
    name = key.name.rpartition(".")[2]
    return f"| `{name}` | {key.kind.expected} | {_default(key)} | {key.doc} |"


def _default(key: Key) -> str:
    if key.otherwise:
        return key.otherwise
    match key.default:
        case bool():
            return str(key.default).lower()
        case float():
            return f"{key.default:.16g}"
        case tuple():
            return ", ".join(key.default)
    return f"{key.default}"


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
