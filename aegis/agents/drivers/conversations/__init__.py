"""The conversations in the own files of agents' programs, by the family of the files."""
