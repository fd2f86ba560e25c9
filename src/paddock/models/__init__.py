"""Models a run can be granted: the built-in one and the providers'. Plugs of `paddock.ports.models`."""
