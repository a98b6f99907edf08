"""Agent programs: their protocols, and the processes that speak them.

Owns: the seam (``harness``), the machine of each protocol (``claude``, ``acp``, pure), the table of
providers (``providers``), the services that an agent asks of its client (``client``,
``terminals``), and the actor that joins machine and process (``driver``), by a plan (``plan``). It
reports to its session in order and at the session's pace (``reporter``).

Rules: a machine does no I/O and sees frames strictly in order. A frame of an unknown type becomes
an ``Unknown`` event. No secret is in an argument or in the environment of a process. Every process
of an agent ends with its driver, and with the daemon.
"""
