"""Searching: tokens, passages and their ranking, and what a search asks for.

Databases answer it in `storage/`; embeddings are made by models.
"""
