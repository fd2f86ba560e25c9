"""Making and installing plugins: `runner new`, `dev`, `install`, `list`, `remove`."""
