"""Real agents' processes below a real daemon: killed, with their guards and with the daemon."""
