"""People and workspaces: budgets, usage, whose turn it is, sums over a workspace."""
