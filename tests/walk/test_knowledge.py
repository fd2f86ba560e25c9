"""A document on its way into a knowledge base when the host dies: it goes on where it was, and stands there once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model_server import ModelServer, Says, model_server
from walk.hosts import HostProcess, text_of, wait_until

KB = "/api/v1/knowledge/kb"
AGENTS = """
agents: {echo: {runner: "plugin:paddock/echo/default"}}
models: {meaning: {provider: openai, type: embedding, base_url: "URL"}}
"""
READER = '{runner: "plugin:paddock/local-agent/default", knowledge_bases: [kb], config: {model: demo}}'
SECTIONS = 100


def embedded(server: ModelServer) -> list[str]:
    """Every passage the model was asked about."""
    return [text for _, _, body in server.asked for text in body["input"]]


def test_a_document_half_brought_in_when_the_host_is_killed_is_brought_in_once(
    new_host: Callable[..., HostProcess],
) -> None:
    text = "\n\n".join(f"# Section {number}\nneedle number {number}" for number in range(SECTIONS))
    with model_server() as server:
        server.says(Says(), Says(), Says(silent=True))
        env = {"PADDOCK_DISCOVER_MODELS": "false"}
        host = new_host(agents=AGENTS.replace("URL", server.url), env=env).start()
        with host.client() as client:
            client.post("/api/v1/knowledge", json={"kbId": "kb", "embeddingModel": "meaning"}).raise_for_status()
            job = client.post(f"{KB}/documents", json={"name": "a.md", "text": text}).raise_for_status().json()
            wait_until(lambda: len(server.asked) == 3, 30, "the middle of the job")
        host.kill()
        before = embedded(server)
        server.afresh()
        host.start()
        with host.client() as client:

            def told(path: str) -> dict[str, Any]:
                return client.get(f"{KB}{path}").raise_for_status().json()

            wait_until(lambda: told(f"/jobs/{job['jobId']}")["status"] == "completed", 60, "the rest of the job")
            assert told(f"/jobs/{job['jobId']}")["done"] == SECTIONS
            assert [one["name"] for one in told("/documents")["documents"]] == ["a.md"]
            assert embedded(server) == before[-32:] + embedded(server)[32:]  # from the part that was not answered on
            assert len(embedded(server)) == SECTIONS - 64
            found = client.post(f"{KB}/search", json={"query": "needle", "topK": SECTIONS}).json()["results"]
            assert sorted(one["place"]["heading"] for one in found) == sorted(f"Section {n}" for n in range(SECTIONS))


def test_vectors_are_counted_for_who_brought_the_document_and_for_the_run_that_asked(
    new_host: Callable[..., HostProcess],
) -> None:
    with model_server() as server:
        agents = AGENTS.replace("URL", server.url).replace("agents: {", f"agents: {{reader: {READER}, ")
        host = new_host(agents=agents, env={"PADDOCK_DISCOVER_MODELS": "false"}).start()
        with host.client() as client:
            client.post("/api/v1/knowledge", json={"kbId": "kb", "embeddingModel": "meaning"}).raise_for_status()
            added = client.post(f"{KB}/documents", json={"name": "a.md", "text": "The hound sleeps."}).json()
            job: Callable[[], dict[str, Any]] = lambda: client.get(f"{KB}/jobs/{added['jobId']}").json()  # noqa: E731
            wait_until(lambda: job()["status"] == "completed", 60, "the document")
            task = host.post("Where is the hound?", agent="reader").json()["taskId"]
            assert host.finished(task)["usage"]["modelCalls"] == 2
            story = client.get(f"/api/v1/agent/runs/{task}/story").json()["entries"]
            asked = [one["detail"] for one in story if one["kind"] == "model"]
            assert [one["operation"] for one in asked] == ["embed", "stream"]
            assert asked[0]["totalTokens"] == 1

            def lines() -> set[tuple[str, str]]:
                return {(one["agentId"], one["modelId"]) for one in client.get("/api/v1/usage").json()["usage"]}

            wait_until(lambda: {("", "meaning"), ("reader", "meaning")} <= lines(), 30, "both on record")


LIBRARIAN = """
import json
from paddock_sdk import AgentRunner, HostCallError, message, serve


class Librarian(AgentRunner):
    permissions = {
        "files": ["knowledge"],
        "knowledge_bases": ["list", "retrieve"],
        "artifacts": ["metadata", "read"],
    }

    async def run(self, ctx, api):
        files = {file.file_id: file.file_name for file in ctx.resources.files}
        read = {}
        for file_id in [*files, *ctx.text.split()]:
            try:
                about = await api.artifacts.metadata(file_id)
                pieces = [piece async for piece in api.artifacts.open_stream(file_id)]
                read[file_id] = [about.name, about.mime_type, b"".join(pieces).decode()]
            except HostCallError as error:
                read[file_id] = error.code
        yield message(json.dumps({"files": files, "read": read}))


serve(Librarian())
"""
TOML = """[plugin]
author = "test"
name = "librarian"
version = "1"
command = ["python", "runner.py"]

[permissions]
files = ["knowledge"]
knowledge_bases = ["list", "retrieve"]
artifacts = ["metadata", "read"]
"""
LIBRARIANS = """
agents:
  reader: {runner: "plugin:test/librarian/default", knowledge_bases: [kb]}
  other: {runner: "plugin:test/librarian/default", knowledge_bases: [elsewhere]}
"""


@pytest.mark.spec("wire/knowledge-files")
def test_files_of_knowledge_are_listed_and_read_by_who_was_granted_their_base_and_by_nobody_else(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    plugin = tmp_path / "plugins" / "librarian"
    plugin.mkdir(parents=True)
    (plugin / "paddock-plugin.toml").write_text(TOML)
    (plugin / "runner.py").write_text(LIBRARIAN)
    host = new_host(agents=LIBRARIANS, plugins=(plugin.parent,)).start()

    def told(agent: str, *ids: str) -> dict[str, Any]:
        return json.loads(text_of(host.events(host.post(" ".join(ids) or "what?", agent=agent).json()["taskId"])))

    with host.client() as client:
        for kb_id in ("kb", "elsewhere"):
            client.post("/api/v1/knowledge", json={"kbId": kb_id}).raise_for_status()
        added = client.post(f"{KB}/documents", json={"name": "a.md", "text": "# Trains\nThey leave at nine."}).json()
        wait_until(
            lambda: client.get(f"{KB}/jobs/{added['jobId']}").json()["status"] == "completed", 60, "the document"
        )
        wait_until(lambda: told("reader")["files"], what="the file being listed")
        seen = told("reader")
        [(file_id, name)] = seen["files"].items()
        assert name == "a.md"
        assert seen["read"][file_id] == ["a.md", "text/markdown", "# Trains\nThey leave at nine."]
        assert told("other", file_id) == {"files": {}, "read": {file_id: "not_found"}}
        assert client.get(f"/api/v1/agent/attachments/{file_id}").status_code == 404
        [document] = client.get(f"{KB}/documents").json()["documents"]
        client.delete(f"{KB}/documents/{document['documentId']}").raise_for_status()
        wait_until(lambda: not told("reader")["files"], what="the file being gone")
        assert told("reader", file_id)["read"] == {file_id: "not_found"}
