"""The keys of the configuration as a page of Markdown. Pure.

``docs/reference/configuration.md`` is what ``python -m aegis.configuration.page`` prints.
"""

from __future__ import annotations

import inspect
import sys

from aegis.configuration.document import MAX_DEPTH
from aegis.configuration.sections import MAX_BYTES, sections
from aegis.configuration.setting import Key, keys_of

INTRODUCTION = """\
# Configuration

`.aegis.yaml` in the root of a daemon. It need not be there, and all of it may be left out: an empty
file, as a missing one, means the defaults. This page is made from the keys themselves: do not edit
it, run `python -m aegis.configuration.page > docs/reference/configuration.md`.

```yaml
terminals:
  shell: fish
  cols: 120
  rows: 40
  timeout_s: 300
```

`up` reads it once, before anything is started. What is changed while a daemon runs holds from the
next `up` on. [`aegis-actors config check`](cli.md#config-check) reads it as `up` would and shows
every value, and so says before a restart whether the next one would work.

A file that names a program (`terminals.shell`) is used once you have trusted it as it is: `up`
shows what it names and refuses until it is called with `--trust`, once for each content
([why](../security.md#state-that-is-not-yours)).

A file that is no good starts nothing: `up` says what is wrong, a line for each problem with the
line of the file, the key and what is expected there, and exits with 2.

```
aegis-actors: /srv/.aegis.yaml line 3: terminals.cols must be a whole number from 2 to 1000, not 1
aegis-actors: /srv/.aegis.yaml line 9: there is no key 'terminal'; did you mean 'terminals'?
```
"""

RULES = f"""\
## The file

- YAML in UTF-8, at most {MAX_BYTES // 1024} KiB, one document, at most {MAX_DEPTH} levels deep.
  Anchors, aliases and tags are refused, and so is a key that stands there twice.
- Unknown keys are errors. A section without keys (`terminals:` alone) is an empty one.
- Numbers are written in decimal digits. YAML has other ways, which are easily taken for something
  else (`0120` is eighty, `1:30` is ninety): they are refused.
- A word that YAML takes for something else than text (`no`, `on`, `5`, `2026-01-01`) is refused
  where text is expected, until it stands in quotes.
- It names a program that is run as you. So it must belong to you or to root, and not everybody may
  write to it.

What stands here is for callers that say nothing: an argument of a call goes before. A terminal that
was open when the daemon ended comes back with the shell and the size that it had.
"""


def configuration_page() -> str:
    """The whole page, ending in a newline."""
    parts = [INTRODUCTION]
    for name, form in sections().items():
        parts.append(f"## {name}\n")
        parts.append(f"{inspect.cleandoc(form.__doc__ or '')}\n")
        parts.append("| key | value | default | what it is |\n|---|---|---|---|")
        parts += [_row(key) for key in keys_of(name, form)]
        parts.append("")
    return "\n".join([*parts, RULES])


def _row(key: Key) -> str:
    name = key.name.partition(".")[2]
    return f"| `{name}` | {key.kind.expected} | {_default(key)} | {key.doc} |"


def _default(key: Key) -> str:
    if key.default is None:
        return key.otherwise
    return f"{key.default:.16g}" if isinstance(key.default, float) else f"{key.default}"


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
