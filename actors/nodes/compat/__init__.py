"""What lets tractor 0.1.0a5 run beside a Trio that it was not written for.

tractor is imported by ``loading`` alone, with a stand-in for the module ``trio`` that only its own
modules see. Everybody else, in the parent and in a worker, keeps the real Trio and its exception
groups. What stands in for what is told in each file; a tractor or a Trio that needs no stand-in
gets none (``needs``).
"""
