"""Random histories of a daemon: drawn from a seed, played on a simulated machine, judged."""
