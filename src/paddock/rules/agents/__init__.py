"""Settings of agents, models, MCP servers and platforms, checked and masked, and the resources an agent's runs are
offered.

What a run is granted of them is worked out in `access/`; nothing here reads a file or looks up an address.
"""
