"""Live terminals: shared PTY shells with exact command records.

Packages, from the lowest up; each may import those before it and none behind it:

``parse``      bytes of a PTY to marks, boundaries and answers (pure)
``hooks``      what is installed into bash, zsh, fish and other shells
``screen``     the emulators: what a person would see
``output``     readers and watchers of what a shell prints
``wakes``      subscribers, and the wakes that they get
``shell``      the actor that owns the PTY and its processes
``front``      the actor that owns the queue, the note and the records
``remote``     the terminals of joined hosts
``directory``  spawn, list, close, restore, placement

The modules beside them are shared by several packages: messages, settings, records, sentences.
"""
