"""People of a workspace: principals and keys, user settings, approvals, budgets and usage, and the overview of runs.

Doors come here with a principal; the gate comes here with a grant. Nothing here decides what a run may do.
"""
