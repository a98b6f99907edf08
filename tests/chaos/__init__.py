"""The fault-injection harness: a simulated machine, random histories, real kills, the checker.

``machine``    a disk, processes, a PTY and a shell in memory
``histories``  random histories of a daemon on a simulated machine and a mock clock
``real``       daemons killed at fault points, at system calls and at random
``checking``   the promises as rules over the evidence of a load
``running``    runs of many seeds or kills: progress, figures, the shortest failing script

``python -m tests.chaos`` (``just chaos``) runs them. ``exhaustive`` and ``strikes`` try each fault
at each place of one scenario. The tests of each part are beside it.
"""
