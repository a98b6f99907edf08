"""The screen of a terminal: an emulator fed from the raw log.

Owns: the actor's side of the screen (``live``), the choice of the bytes to feed (``feeding``), the
emulator (``emulator``, ``sequences``, ``widths``) on one of two libraries (``choice``,
``avt_grid``, ``pyte_grid``, ``pyte_screen``), the followed modes (``alternate``, ``modes``), and
drawing a screen on another terminal (``redraw``).

Rules: the emulator is never on the path of a byte to its readers. Only this package imports an
emulator library, and only when a screen is first needed. Only ``live`` does I/O.

Public: ``LiveScreen``.
"""
