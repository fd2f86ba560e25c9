"""People: who acts, their keys and settings, what they approve, what they spend and what administrators see of it."""
