"""Looking after data and keys: `admin` and `keys`."""
