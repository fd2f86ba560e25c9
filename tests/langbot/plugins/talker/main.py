"""A plugin as LangBot's own template writes it."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Talker(BasePlugin):
    async def initialize(self) -> None:
        print("a stray print on standard output")  # the wire must not mind
