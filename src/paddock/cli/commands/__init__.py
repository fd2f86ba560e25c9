"""What each family of commands takes. The work is in one module per command beside this folder."""
