"""How programs and files of strangers are kept apart from the rest of the machine.

`sandbox.py` draws the view of one confined process, `syscalls.py` says what it may not ask of the kernel, `homes.py`
keeps the private directories of plugins, `trees.py` is the only way the host touches a tree that somebody else may
write in. Who is confined, and how far, is decided by those who start programs. Nothing here starts one, but to see
that it works.
"""
