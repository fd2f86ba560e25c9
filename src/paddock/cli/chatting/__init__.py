"""Talking to agents from a terminal. Everything goes through the HTTP API."""
