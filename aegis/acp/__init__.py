"""ACP for editors: the sessions of a daemon as the threads of an editor, over standard streams.

- ``launch``    the process: streams, daemon, and their ends.
- ``wire``      lines of JSON-RPC in both directions.
- ``agent``     the methods that an editor calls.
- ``thread``    one session as a thread: its updates, the prompts of this editor, their ends.
- ``asking``    requests of agents, as permission requests of the editor.
- ``updates``   entries of a transcript as ACP updates. Pure.
- ``choices``   dialogs, modes and options as ACP has them. Pure.
- ``prompts``   the text, images and files of a prompt. Pure.

The process is a client of the daemon, like any other: its end ends nothing. It knows the protocol
and the client only. Standard output has nothing but frames.
"""
