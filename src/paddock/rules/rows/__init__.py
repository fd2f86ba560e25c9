"""The rows that are stored, and which of them follow from a fact. How a database keeps them is in `storage/`."""
