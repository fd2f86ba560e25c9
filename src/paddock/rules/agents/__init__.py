"""What may be written about agents, models, MCP servers and platforms, and what an agent's runs are offered."""
