"""Links: connections between processes, from the proof of the key to packets for actors."""
