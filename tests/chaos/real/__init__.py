"""Real daemons in a scratch directory, killed under load again and again, and checked."""
