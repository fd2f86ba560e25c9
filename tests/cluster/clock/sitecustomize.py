"""Puts the clock of the program that is started with this folder on its path forward, or back."""

import os
import time

_real, _ahead = time.time, float(os.environ["CLOCK_AHEAD"])
time.time = lambda: _real() + _ahead
