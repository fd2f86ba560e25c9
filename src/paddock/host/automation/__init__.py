"""Work by the clock: jobs and their scheduler, and the calendars that agents write for their users.

A job that is due becomes a run through the inbox, like any other message. Times and rules are in `rules/schedule/`.
"""
