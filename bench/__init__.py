"""The floor and the figures: how fast the host is beside the least that could do the same job.

Measuring lives here and nothing the host needs: no module of the host imports this package.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the engines of the tests are the engines here
