"""`paddock-plugin.toml`: a word that means nothing there is pointed out instead of passed over."""

from pathlib import Path

import pytest

from paddock.runners.installed.plugins import PluginError, load_plugin

GOOD = """\
[plugin]
author = "me"
name = "demo"
version = "1.0"
description = "A demo."
command = ["python", "runner.py"]
runs_per_process = 1
[permissions]
history = ["page"]
history_scope = "conversation"
[python]
requirements = []
path = ["src"]
[isolation]
level = "L1"
network = true
memory_mb = 512
"""


def load(directory: Path, text: str):
    (directory / "paddock-plugin.toml").write_text(text)
    return load_plugin(directory)


def test_every_word_of_a_plugin_file_is_known(tmp_path: Path) -> None:
    plugin = load(tmp_path, GOOD)
    assert (plugin.isolation, plugin.network, plugin.memory_mb) == ("L1", True, 512)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("[permissions]", "[permisions]"), "[permisions] is no table of a plugin file (did you mean permissions?)"),
        (("[isolation]", "[sandbox]"), "(known are isolation, permissions, plugin, python)"),
        (("[plugin]", "network = true\n[plugin]"), "network is in no table"),
        (("version =", "verison ="), "[plugin] knows no 'verison' (did you mean version?)"),
        (("history =", "histroy ="), "[permissions] knows no 'histroy' (did you mean history?)"),
        (("requirements =", "requirement ="), "[python] knows no 'requirement' (did you mean requirements?)"),
        (("network =", "netwrok ="), "[isolation] knows no 'netwrok' (did you mean network?)"),
        (("network = true", 'network = "yes"'), "network must be true or false"),
    ],
)
def test_a_word_it_does_not_know_is_refused_with_the_one_that_was_meant(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    with pytest.raises(PluginError) as fault:
        load(tmp_path, GOOD.replace(*change))
    assert sentence in str(fault.value)
    assert str(fault.value).startswith(f"{tmp_path}/paddock-plugin.toml: ")
    assert str(fault.value).endswith(".")
    assert "\n" not in str(fault.value)
