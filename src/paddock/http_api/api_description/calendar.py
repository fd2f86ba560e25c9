"""The calendar, described."""

from paddock.http_api.api_description.words import (
    MOMENT,
    TEXT,
    TRUTH,
    Operation,
    Parameter,
    Said,
    Schema,
    list_of,
    ref,
    shape,
)

_ROOM = "Calendar"
SCHEMAS: dict[str, Schema] = {
    "CalendarOccurrence": shape(
        {
            "eventId": TEXT,
            "title": TEXT,
            "start": TEXT,
            "end": TEXT,
            "allDay": TRUTH,
            "eventTimezone": TEXT,
            "startsAt": MOMENT,
            "endsAt": MOMENT,
            "busy": TRUTH,
        },
        {"rrule": TEXT, "description": TEXT, "location": TEXT},
    ),
    "CalendarPage": shape(
        {"from": MOMENT, "to": MOMENT, "events": list_of(ref("CalendarOccurrence")), "hasMore": TRUTH}
    ),
}
_EVENT = {
    "eventId": "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10",
    "title": "Stand-up",
    "start": "2026-03-16T09:00",
    "end": "2026-03-16T09:15",
    "allDay": False,
    "eventTimezone": "Europe/Berlin",
    "startsAt": "2026-03-16T08:00:00.000Z",
    "endsAt": "2026-03-16T08:15:00.000Z",
    "busy": True,
    "rrule": "FREQ=WEEKLY;BYDAY=MO",
}
_PAGE = {"from": "2026-03-15T23:00:00.000Z", "to": "2026-03-22T23:00:00.000Z", "events": [_EVENT], "hasMore": False}
_ICS = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Paddock//Calendar//EN\r\nEND:VCALENDAR\r\n"
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET",
        "/api/v1/calendar",
        "What takes place in your calendar",
        _ROOM,
        {200: ("Each occurrence, the earliest first.", Said(ref("CalendarPage"), _PAGE))},
        parameters=(
            Parameter("from", "A day, or a moment with its offset; now by default."),
            Parameter("to", "The same; a day counts whole. 31 days later by default, at most 400 days later."),
            Parameter("timeZone", "The IANA zone that days are meant in; UTC by default."),
        ),
        says="`start` and `end` are on the wall of `eventTimezone`; of an event of whole days, `end` is the last day.",
    ),
    Operation(
        "GET",
        "/api/v1/calendar.ics",
        "Your calendar as a file",
        _ROOM,
        {200: ("iCalendar (RFC 5545), with its time zones.", Said(TEXT, _ICS, "text/calendar"))},
    ),
)
