"""The command line: `main` runs a command, `app` and `commands/` state them, the other folders do their larger work.

A command imports its work when it runs. What a person is told comes from `output`; a running host is asked through
`client`, never by reading its files.
"""

import gc

gc.set_threshold(1_000_000, 50, 50)
"""What is loaded stays: looking for garbage in it took a tenth to a fifth of every start. The host sets its own."""
