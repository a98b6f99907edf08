"""The fault-injection harness: simulated machines, random histories, real kills, the checker.

``checking``   the promises as rules over a history of events
``histories``  random histories on a simulated machine and a mock clock
``real``       daemons killed at fault points, at system calls and at random
``running``    the face of both: ``just chaos``

The modules beside them are the simulated machine: disk, processes, PTY, shell. Each part's own
tests are beside it. Nothing here is part of the installed package.
"""
