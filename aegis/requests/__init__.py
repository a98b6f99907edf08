"""Requests: everything that an agent or a workflow asks a person, in one durable inbox.

Owns: the row of a request, and its steps (``records``, pure), the check of an answer and the
replies (``answers``, pure), what is special about questions by ``aegis_ask_human`` (``questions``,
pure), lists and streams (``streams``), and the actor (``desk``).

Rules: an open request is synced before it is shown, an answer before it acts. Exactly one answer
wins; nothing acts after a request was withdrawn.
"""
