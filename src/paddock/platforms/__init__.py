"""Chat platforms: how the host talks to their servers. Plugs of `paddock.ports.platforms`."""
