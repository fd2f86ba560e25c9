"""Runners: separate programs that answer runs. `gateway.py` decides which process or connection a run goes to."""
