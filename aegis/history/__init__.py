"""The search of what has ended, in ledgers and in the archive."""
