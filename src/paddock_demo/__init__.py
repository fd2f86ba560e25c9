"""The demo model: no key, no network, the same answer every time. Pure functions of messages and tools.

`paddock.models.demo` offers it to agents. It knows the words of the protocol and nothing of the host.
"""
