"""Where terminals run beside the daemon's own process: its workers, and hosts that have joined.

Loaded only where such are wanted: it needs the extra ``nodes``.
"""
