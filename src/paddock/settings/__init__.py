"""Settings from outside, with defaults that work on a laptop.

Strongest first: the command line, `PADDOCK_*` in the environment, a TOML file, the default. A wrong value is one
sentence that says which setting, which value, where it came from and what is allowed.
"""

from paddock.settings.kinds import EMBEDDED
from paddock.settings.loading import CONFIG_NAME, NOT_SETTINGS, PREFIX, SettingsError, load, unknown_variables
from paddock.settings.shape import Settings, allowed_values

__all__ = [
    "CONFIG_NAME",
    "EMBEDDED",
    "NOT_SETTINGS",
    "PREFIX",
    "Settings",
    "SettingsError",
    "allowed_values",
    "load",
    "unknown_variables",
]
