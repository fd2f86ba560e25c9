"""The adapter for LangBot's runner plugins: an unmodified plugin runs in a process of its own, in an environment of its
own, and is spoken to on its own wire. Nothing of LangBot is imported here.

`python -m paddock_runners.langbot` is the command of every installed LangBot plugin; docs/guides/langbot.md tells how.
"""
