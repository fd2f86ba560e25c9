"""The calendar of the user a run is for, as two built-in tools. One source of tools; the host does the work."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_core import to_json

from paddock.ports.automations import CalendarWork
from paddock.ports.tools import ToolAnswer, ToolInfo, ToolUse
from paddock.rules.errors import HostError
from paddock.tools.catalog import MAX_ERROR_CHARS, encoded, failed
from paddock.tools.functions import Signature, signature_of

TIMEOUT_SECONDS = 30.0


class _Asked:
    """One call, on behalf of one run."""

    def __init__(self, calendar: CalendarWork, use: ToolUse | None = None) -> None:
        self._calendar = calendar
        self._use = use

    @property
    def use(self) -> ToolUse:
        assert self._use is not None
        return self._use

    async def calendar_write(
        self,
        *,
        action: Literal["create", "update", "delete"],
        event_timezone: str | None = None,
        event_id: str | None = None,
        title: str | None = None,
        start: str | None = None,
        end: str | None = None,
        rrule: str | None = None,
        description: str | None = None,
        location: str | None = None,
        busy: bool | None = None,
        allow_conflict: bool = False,
    ) -> Mapping[str, Any]:
        """Create, update or delete an event in the user's calendar.

        An event that overlaps another is refused with the overlaps named, and nothing is written, unless
        allow_conflict is true.

        Args:
            action: create a new event, update what is given of one, or delete one.
            event_timezone: IANA name of the zone that start and end are meant in, such as Europe/Berlin; needed
                whenever a time is given.
            event_id: which event, for update and delete.
            title: what it is called; needed for a new event.
            start: a time on the wall such as 2026-03-15T09:00, without Z or an offset; a day such as 2026-03-15 for
                an event of whole days.
            end: like start; for whole days the last day, included. Without it one hour, or one day.
            rrule: RFC 5545 rule for an event that comes again, such as FREQ=WEEKLY;BYDAY=MO; start is its first
                time. An empty text ends the repetition.
            description: more about it.
            location: where it is.
            busy: whether it takes the time; false for what others may overlap, such as a birthday.
            allow_conflict: write it although it overlaps; ask the user first.
        """
        given = {
            "event_timezone": event_timezone,
            "event_id": event_id,
            "title": title,
            "start": start,
            "end": end,
            "rrule": rrule,
            "description": description,
            "location": location,
            "busy": busy,
            "allow_conflict": allow_conflict,
        }
        return await self._calendar.write(self.use, action, given)

    async def calendar_read(
        self,
        *,
        event_timezone: str,
        start: str | None = None,
        end: str | None = None,
        event_id: str | None = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 100,
    ) -> Mapping[str, Any]:
        """Tell what is in the user's calendar: the events between two times, or one event.

        Args:
            event_timezone: IANA name of the zone that start and end are meant in, such as Europe/Berlin.
            start: a day such as 2026-03-15 or a time such as 2026-03-15T09:00; now, when it is left out.
            end: like start, a day counts whole; 31 days later, when it is left out.
            event_id: one event, with the rule it comes again by.
            limit: at most so many.
        """
        given = {
            "event_timezone": event_timezone,
            "start": start,
            "end": end,
            "event_id": event_id,
            "limit": limit,
        }
        return await self._calendar.read(self.use, given)


_Asked.calendar_read.read_only = True  # pyright: ignore[reportFunctionMemberAccess] - read by signature_of


@cache
def _signatures() -> Mapping[str, Signature]:
    """Worked out once: how the tools are called depends on their words above, and not on whose calendar it is."""
    nobodys = object.__new__(_Asked)
    asked = (nobodys.calendar_write, nobodys.calendar_read)
    found = (signature_of(one, tool_type="builtin", source="paddock") for one in asked)
    return {one.info.name: one for one in found}


class CalendarTools:
    """The `Tools` port."""

    def __init__(self, calendar: CalendarWork, *, clock: Callable[[], float]) -> None:
        self._calendar = calendar
        self._clock = clock
        self._signatures = _signatures()

    def list(self, workspace: str) -> Sequence[ToolInfo]:  # noqa: ARG002 - the same for every workspace
        return [one.info for one in self._signatures.values()]

    def find(self, workspace: str, name: str) -> ToolInfo | None:  # noqa: ARG002 - as above
        found = self._signatures.get(name)
        return found.info if found else None

    async def call(self, use: ToolUse) -> ToolAnswer:
        signature = self._signatures[use.name]
        seconds = max(0.0, min(TIMEOUT_SECONDS, use.deadline_at - self._clock()))
        try:
            arguments = signature.read(use.parameters)
            async with asyncio.timeout(seconds):
                return ToolAnswer(encoded(await getattr(_Asked(self._calendar, use), use.name)(**arguments)))
        except ValidationError as error:
            return failed(signature.complaint(error))
        except HostError as error:
            return ToolAnswer(to_json({"error": error.message[:MAX_ERROR_CHARS], **error.details}), is_error=True)
        except TimeoutError:
            return failed(f"the calendar did not answer within {seconds:.3g} seconds; read it again", unknown=True)
