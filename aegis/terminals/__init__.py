"""Live terminals: shared PTY shells with exact command records.

Packages, from the lowest up; each may import the packages above it in this list:

``parse``      the bytes of a PTY, parsed into marks, boundaries and answers (pure)
``hooks``      the start-up files and keys for bash, zsh, fish and other shells
``screen``     the emulators, which draw the screen of a terminal
``output``     readers and watchers of the output of a shell
``wakes``      subscribers and their wakes
``shell``      the actor that owns the PTY and its processes
``front``      the actor that owns the queue, the note and the records
``remote``     the terminals of joined hosts
``directory``  spawning, listing, closing, restoring and placing terminals

The modules in this package itself are shared by all packages: messages, settings, records, errors.
"""
