"""Real daemons of a scratch directory, killed under load over and over, and judged by evidence."""
