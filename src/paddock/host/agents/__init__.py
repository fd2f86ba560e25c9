"""Agents of this host: their definitions from the agents file, a program or the API, their health, files and secrets.

A new run looks up its agent in `agents.py`. Nothing here runs an agent or knows a model.
"""
