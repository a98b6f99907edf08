"""The simulated machine: a disk, processes, a PTY and a bash with the hook, all in memory.

``SimulatedDisk`` and ``SimulatedFlusher`` take the place of the journal's disk, ``SimulatedHost``
that of the processes and PTYs; the actors above them are the real ones. Time is Trio's, so that a
mock clock jumps, and chance comes from a seed.
"""
