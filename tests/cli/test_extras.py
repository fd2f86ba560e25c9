"""The core is enough for the embedded host; a feature whose packages are missing says which extra brings them."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopback import get, post
from paddock.knowledge import formats
from paddock.knowledge.reading import UnreadableError
from paddock.knowledge.vectors import packed
from paddock.rules.errors import EXTRAS, HostError

ROOT = Path(__file__).parents[2]
WITHOUT = f"""
import sys
for name in {sorted({*EXTRAS, "openai", "anthropic"})}:
    sys.modules[name] = None
from paddock.cli.main import main
main()
"""
"""The program on a machine that has the core alone; its MCP library brings one package of OpenTelemetry."""
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da6364f80f00010501012718e366"
    "0000000049454e44ae426082"
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


def told(extra: str) -> str:
    return f"packages that are not installed here: pip install 'paddock[{extra}]'"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a host without any extra."""
    data = tmp_path_factory.mktemp("core") / "data"
    command = [sys.executable, "-c", WITHOUT, "serve", "--port", "0", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as host:
        assert host.stdout is not None
        found = next(filter(None, (re.search(r"ready at (\S+)", line) for line in host.stdout)))
        yield found[1]
        host.terminate()


def test_the_core_alone_answers(core: str) -> None:
    body = {"threadId": "t", "runId": "1", "messages": [{"id": "m", "role": "user", "content": "hello"}]}
    answer = post(f"{core}/api/v1/agent/ag-ui/echo", json=body)
    assert "RUN_FINISHED" in answer.text


def test_what_draws_a_picture_names_its_extra() -> None:
    child = "import sys; sys.modules['PIL'] = None; from paddock.images.child import main; main('image/png', 1000)"
    done = subprocess.run([sys.executable, "-c", child], input=PIXEL, capture_output=True, timeout=60, check=True)
    assert told("pictures").encode() in done.stdout


def test_a_pdf_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(UnreadableError, match=re.escape(told("knowledge"))):
        list(formats.READERS[formats.PDF](PDF))


def test_vectors_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(HostError, match=re.escape(told("knowledge"))):
        packed([[1.0]], 1)


def test_a_calendar_is_exported_with_the_extra_for_it(core: str) -> None:
    assert told("calendar") in get(f"{core}/api/v1/calendar.ics").json()["detail"]


@pytest.mark.parametrize(
    ("setting", "value", "extra"),
    [
        ("PADDOCK_STORE", "postgresql://127.0.0.1:1/x", "postgres"),
        ("PADDOCK_ARTIFACTS", "s3://bucket", "s3"),
        ("PADDOCK_TRACES", "http://127.0.0.1:1", "otel"),
    ],
)
def test_a_setting_that_needs_an_extra_is_refused_with_its_name(
    setting: str, value: str, extra: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", WITHOUT, "serve", "--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={setting: value, "PATH": ""}
    )
    assert done.returncode != 0
    assert told(extra) in done.stderr


def test_every_extra_is_offered_and_brings_its_packages() -> None:
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) == set(offered) - {"all"}
    assert all(set(EXTRAS.values()) <= set(re.findall(r"[a-z0-9]+", line)) for line in offered["all"])
