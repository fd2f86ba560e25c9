"""Runners that attach from elsewhere: tokens, and who is there."""
