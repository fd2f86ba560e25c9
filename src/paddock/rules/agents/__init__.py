"""Settings of agents, models, MCP servers and platforms, and the resources an agent's runs are offered."""
