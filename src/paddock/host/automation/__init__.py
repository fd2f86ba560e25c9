"""Work by the clock: jobs, their schedule, and the calendar that agents write. A due job is accepted like a message."""
