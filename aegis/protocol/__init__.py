"""Every command, reply, event and stream, as immutable attrs classes: one module per noun.

``table`` is the one command set, made of ``entry``. ``derived`` computes schemas, pages and the
reading of arguments from it. Nothing here imports Trio or the operating system.
"""
