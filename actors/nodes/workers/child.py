"""The program of a worker process; ``compat.process`` starts it.

Its arguments are those that tractor gives its children. The key comes as the first line of standard
input, which then is the leash by which the parent holds this process.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys

from actors.nodes.links.key import KEY_BYTES, NodeKey, key_of_text
from actors.nodes.workers.leash import STANDARD_INPUT, take_leash

_LINE_LIMIT = 2 * KEY_BYTES + 1


def main(arguments: list[str]) -> None:
    """Run a worker until the parent ends it."""
    key = _read_key()
    take_leash()
    options = _options(arguments)
    # Loaded once the parent holds the leash: it takes a third of a second.
    from actors.nodes.compat.child_runtime import run_child

    run_child(key, options.uid, options.parent_addr)


def _read_key() -> NodeKey:
    # Read only this line: the rest of standard input is the leash.
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_LIMIT:
        byte = os.read(STANDARD_INPUT, 1)
        if not byte:
            break
        line += byte
    return key_of_text(line.rstrip(b"\n"))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uid", type=ast.literal_eval, required=True)
    parser.add_argument("--parent_addr", type=ast.literal_eval, required=True)
    parser.add_argument("--loglevel")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
