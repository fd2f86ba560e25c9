"""The runner protocol on a connection: frames, runs with their credit, host calls. Knows nothing of processes."""
