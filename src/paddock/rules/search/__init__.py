"""Searching: tokens, ranking, passages, and what a search asks for. Databases answer it in `storage/`."""
