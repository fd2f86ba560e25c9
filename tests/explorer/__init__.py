"""Every order in which a small world can happen to a session, tried against the shipped rules.

`world.py` says what users, agents, links and timers may do; `search.py` goes through all of it, breadth first, so the
first trace it finds is a shortest one. Nothing here knows how the session decides.
"""
