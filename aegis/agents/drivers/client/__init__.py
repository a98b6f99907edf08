"""The services that an agent asks of its ACP client (``services``): files, and terminals.

Owns: ``fs/read_text_file`` and ``fs/write_text_file``, with the walk to a file that never leaves a
directory (``files``). The machine asks a person before a write; nothing here does.
The terminals are a package of their own.
"""
