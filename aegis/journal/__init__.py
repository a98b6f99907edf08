"""Durable files: ledgers, notes and raw logs.

Owns: the format of ledgers (``ledger``, pure), appending with group commit (``appender``), opening
(``opening``) and reading (``reader``, ``folding``) them, the rows of durable entities (``table``),
notes (``note``), the raw bytes of terminals (``raw_log``), deletion of directories (``purging``),
syncs in threads (``flusher``), and the interface to the file system (``disk``).

Rules: an acknowledged line survives a loss of power. No sync runs on the event loop.
"""
