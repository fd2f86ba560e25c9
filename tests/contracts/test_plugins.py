"""What every store promises about plugins that all hosts have."""

import pytest

from contracts.builders import a_decision
from paddock.ports import Store
from paddock.rules.rows.rows import PluginRow

pytestmark = pytest.mark.anyio


def a_plugin(name: str, body: bytes = b"\0\xff files", sha256: str = "aa") -> PluginRow:
    return PluginRow(f"me/{name}", "1.0", sha256, body, 1.5, "ann")


async def test_a_plugin_is_kept_with_its_files_and_written_again_whole(store: Store) -> None:
    await store.write([a_plugin("one"), a_plugin("two", sha256="bb"), a_decision()])
    assert await store.shared_plugins() == {"me/one": "aa", "me/two": "bb"}
    assert await store.shared_plugin("me/one") == a_plugin("one")
    again = PluginRow("me/one", "2.0", "cc", b"others", 2.5, "bob")
    await store.write([again])
    assert await store.shared_plugin("me/one") == again
    assert await store.shared_plugin("me/nobody") is None


async def test_a_plugin_without_files_is_gone_and_only_that_one(store: Store) -> None:
    await store.write([a_plugin("one"), a_plugin("two")])
    await store.write([a_plugin("one", b""), a_plugin("nobody", b"")])
    assert await store.shared_plugins() == {"me/two": "aa"}
    await store.write([a_plugin("two"), a_plugin("two", b""), a_plugin("three"), a_plugin("three", sha256="dd")])
    assert await store.shared_plugins() == {"me/three": "dd"}
