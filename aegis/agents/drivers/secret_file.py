"""``SecretFile``: a file with a secret for an agent that takes it in no other way."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from aegis.errors import Unavailable


@attrs.frozen(kw_only=True)
class SecretFile:
    """A file of mode 0600, which exists until the agent has read it.

    ``is_kept``: until the agent's process has ended, because it starts others that read it.
    """

    path: Path
    text: str = attrs.field(repr=False)
    is_kept: bool = False

    def write(self) -> None:
        """Write the file, in place of an earlier one. Raises ``Unavailable``."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self.delete()
            with os.fdopen(os.open(self.path, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(self.text)
        except OSError as error:
            raise Unavailable(
                f"the file {str(self.path)!r} for the agent cannot be written: {error.strerror}"
            ) from error

    def delete(self) -> None:
        """Delete the file if it exists. Raises ``OSError``."""
        self.path.unlink(missing_ok=True)
