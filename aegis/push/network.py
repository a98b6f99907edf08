"""``PushNetwork``: how push services are reached. Its address is checked, and only it connected to.

A name is looked up once, by this class: a second lookup, by the library that connects, could have
another answer (DNS rebinding).
"""

from __future__ import annotations

import socket
import ssl

import httpx2 as httpx
import trio

from aegis.limits import is_no_thread
from aegis.push.endpoint import PORT, is_public


class UnreachableService(Exception):
    """A push service was not reached: the message may have been sent or not."""


class ForbiddenService(Exception):
    """The name of a push service has an address that is not public."""


class PushNetwork:
    """The network of this machine. Tests subclass it; no setting and no variable does."""

    port = PORT

    def tls(self) -> ssl.SSLContext:
        """Return the context that checks the certificate of a push service."""
        return httpx.create_ssl_context(trust_env=False)

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of a host. Raises ``OSError``."""
        found = await trio.socket.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
        return [str(place[0]) for _, _, _, _, place in found]

    def is_allowed(self, address: str) -> bool:
        """Return whether an address may be connected to."""
        return is_public(address)

    async def address_of(self, host: str) -> str:
        """Return the address to connect to. Raises the errors of this module.

        All addresses of a name must be allowed: of a mixed answer, the next one may be another.
        """
        try:
            found = await self.lookup(host.strip("[]"))
        except (OSError, UnicodeError) as error:
            raise UnreachableService(f"{host} has no address") from error
        except RuntimeError as error:  # names are looked up in a thread
            if not is_no_thread(error):
                raise
            raise UnreachableService("no thread is left to look it up") from error
        if not found:
            raise UnreachableService(f"{host} has no address")
        for each in found:
            if not self.is_allowed(each):
                raise ForbiddenService(f"{host} is at {each}, which is no public address")
        return found[0]
