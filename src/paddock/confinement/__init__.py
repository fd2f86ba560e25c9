"""Confinement of foreign programs and files on this machine.

`sandbox.py` draws the view of one confined process, `limits.py` has its system calls and resources, `homes.py` the
private directories of plugins, `trees.py` is the only way the host touches a tree that somebody else may write in.
Callers decide what is confined, and how far. Nothing here starts a program, except to see that confinement works.
"""
