"""Times: schedules of jobs, events of calendars, time zones.

The time now always comes in as a value, and so do zones.
"""
