"""What ``aegis-actors doctor`` looks at: machine, state of a root, its daemon, shells."""
