"""``python -m tests.agents_real.model_server RECORD``: prints its port, ends at end of input."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tests.agents_real.model_server.server import ModelServer


def main() -> None:
    """Serve until standard input ends."""
    server = ModelServer(Path(sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
