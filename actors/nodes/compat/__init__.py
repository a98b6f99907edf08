"""The adaptation of tractor 0.1.0a5 to a Trio that it was not written for.

tractor is imported by ``loading`` alone, with a stand-in for the module ``trio`` that only its own
modules see. All other code, in the parent and in a worker, keeps the real Trio and its exception
groups. Each file documents its stand-in; a tractor or a Trio that needs none gets none (``needs``).
"""
