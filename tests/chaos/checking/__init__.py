"""Whether what the system promises held: evidence of a load, and the rules it is held against."""
