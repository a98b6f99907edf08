"""What ``.aegis.yaml`` may say: its keys, how it is read, and what is told of a bad one."""
