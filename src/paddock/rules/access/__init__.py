"""Permissions of runs, agents and callers: grants, the gate's checks, limits, approvals, credentials and signatures,
and the reasons given for a refusal.

Who asks is authenticated at the doors; the checks are run in `host/calls/`.
"""
