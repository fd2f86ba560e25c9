"""Administration and operation: agents, runners, keys, knowledge, audit, probes, the console's files."""
