"""Settings from outside, with defaults that work on a laptop.

Strongest first: the command line, `PADDOCK_*` in the environment, a TOML file, the default. A wrong value is one
sentence that says which setting, which value, where it came from and what is allowed.
"""

from paddock.settings.kinds import EMBEDDED as EMBEDDED
from paddock.settings.loading import CONFIG_NAME as CONFIG_NAME
from paddock.settings.loading import NOT_SETTINGS as NOT_SETTINGS
from paddock.settings.loading import PREFIX as PREFIX
from paddock.settings.loading import SettingsError as SettingsError
from paddock.settings.loading import load as load
from paddock.settings.loading import unknown_variables as unknown_variables
from paddock.settings.shape import Settings as Settings
from paddock.settings.shape import allowed_values as allowed_values
