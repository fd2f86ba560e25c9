"""A document on its way into a knowledge base when the host dies: it goes on where it was, and stands there once."""

from collections.abc import Callable
from typing import Any

from model_server import ModelServer, Says, model_server
from walk.hosts import HostProcess, wait_until

KB = "/api/v1/knowledge/kb"
AGENTS = """
agents: {echo: {runner: "plugin:paddock/echo/default"}}
models: {meaning: {provider: openai, type: embedding, base_url: "URL"}}
"""
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
