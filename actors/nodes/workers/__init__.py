"""Workers: child processes that run a function, or a part of the tree of actors."""
