"""The host's work: it does what `rules/` decides, through the ports. One room for each concept.

A message comes in at `conversations/inbox.py`, is worked on by the loop in `session/`, goes to a runner through `runs/`
and leaves by `streams/`. No room knows a dialect (that is a door's) or a database (that is a plug's). Imports between
rooms point one way; `pyproject.toml` has the order. The modules beside the rooms serve all of them.
"""
