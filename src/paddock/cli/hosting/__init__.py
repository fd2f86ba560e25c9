"""Starting and stopping a host: `serve`, `run`, and how a running host shows that it is there."""
