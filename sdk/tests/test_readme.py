"""The README's runner and its test, as written there."""

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio
README = (Path(__file__).parents[1] / "README.md").read_text()


async def test_the_runner_of_the_readme_passes_the_test_of_the_readme() -> None:
    runner, its_test = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(runner + its_test, names)
    await names["test_it_counts_the_turns"]()
