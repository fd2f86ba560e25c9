"""Export of a calendar as an .ics file (RFC 5545). Imported late by `Calendars.export`, because the library is slow to
import."""

# The library is not fully typed:
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from icalendar import Calendar, vRecur
from icalendar import Event as IcsEvent

from paddock.host.automation.calendar import zone_of
from paddock.rules.rows.automation import CalendarEventRow
from paddock.rules.schedule.calendar import CalendarEvent, from_body, until_of
from paddock.rules.schedule.schedule import read_rule

_ONE_DAY = timedelta(days=1)


def as_ics(rows: Sequence[CalendarEventRow]) -> bytes:
    calendar = Calendar()
    calendar.add("prodid", "-//Paddock//Calendar//EN")
    calendar.add("version", "2.0")
    for row in rows:
        calendar.add_component(_component(row, from_body(row.body)))
    calendar.add_missing_timezones()
    return calendar.to_ical()


def _component(row: CalendarEventRow, event: CalendarEvent) -> IcsEvent:
    made = IcsEvent()
    made.add("uid", row.event_id)
    made.add("dtstamp", datetime.fromtimestamp(row.updated_at, UTC))
    made.add("created", datetime.fromtimestamp(row.created_at, UTC))
    start, end = _when(event)
    made.add("dtstart", start)
    made.add("dtend", end)
    made.add("summary", event.title)
    made.add("transp", "OPAQUE" if event.busy else "TRANSPARENT")
    for name in ("description", "location"):
        if text := getattr(event, name):
            made.add(name, text)
    if event.rrule:
        made.add("rrule", _rule(event))
    return made


def _when(event: CalendarEvent) -> tuple[date, date]:
    """Start and end: days, with the end on the day after the last, or local times with their zone."""
    if event.all_day:
        return date.fromisoformat(event.start), date.fromisoformat(event.end) + _ONE_DAY
    zone = zone_of(event.event_timezone)
    return datetime.fromisoformat(event.start).replace(tzinfo=zone), datetime.fromisoformat(event.end).replace(
        tzinfo=zone
    )


def _rule(event: CalendarEvent) -> vRecur:
    """The rule as given, but with its end as the standard asks: a day of the zone, or a time in UTC."""
    zone = zone_of(event.event_timezone)
    rule = vRecur.from_ical(read_rule(event.rrule, zone).text)
    until = until_of(event, zone)
    if until is not None:
        rule["UNTIL"] = [until if isinstance(until, date) else datetime.fromtimestamp(until, UTC)]
    return rule
