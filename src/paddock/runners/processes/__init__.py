"""Runner processes: planned, started, watched, restarted and stopped for certain."""
