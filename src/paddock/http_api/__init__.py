"""The HTTP doors. A handler reads the request, calls one thing of the host and answers; nothing is decided here.

`edge/` is what every request needs; each other room is one door or one group of operations.
"""
