"""The services that an agent asks of its ACP client: text files of the session's directory.

Owns: the walk to a file that never leaves a directory (``beneath``), and ``fs/read_text_file`` and
``fs/write_text_file`` (``files``). The machine asks a person before a write; nothing here does.
"""
