"""One module per family of commands: its options, and its work where that is one call of the HTTP API. Larger work
is beside this folder, imported when the command runs."""
