"""Where facts, rows and keys are kept: plugs behind `paddock.ports.Store`. They decide nothing."""
