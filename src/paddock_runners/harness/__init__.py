"""Shared parts of the harness runners: the process, what it says in our words, and its end.

Each harness's own language is in its runner's folder; here are the parts that must not differ between them.
"""
