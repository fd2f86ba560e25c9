"""Makes all parts of a host, stage by stage. Every part gets what it needs when it is made."""

from dataclasses import dataclass

from paddock.compose.conversations import Conversations, open_conversations
from paddock.compose.ground import Foundation, Resources, gather_resources, lay_foundation
from paddock.compose.machinery import Machinery, set_up_runs
from paddock.compose.upkeep import Upkeep, see_to_upkeep
from paddock.settings import Settings


@dataclass(frozen=True, slots=True)
class Rooms:
    ground: Foundation
    granted: Resources
    machinery: Machinery
    talks: Conversations
    upkeep: Upkeep


def rooms_of(settings: Settings, url: str = "") -> Rooms:
    ground = lay_foundation(settings, url)
    granted = gather_resources(ground, url)
    machinery = set_up_runs(ground, granted)
    talks = open_conversations(ground, granted, machinery)
    return Rooms(ground, granted, machinery, talks, see_to_upkeep(ground, granted, machinery, talks))
