"""Tools a run can be granted. Plugs of `paddock.ports.tools`."""
