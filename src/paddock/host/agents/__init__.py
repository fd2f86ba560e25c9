"""Agents: definitions from files, programs and the API, their health and their secrets. No agent runs here."""
