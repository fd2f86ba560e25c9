"""Knowledge a run can be granted. Plugs of `paddock.ports.knowledge`."""
