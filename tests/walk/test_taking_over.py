"""A host begins without keys; whoever was `dev` becomes somebody, and takes along what was said."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from walk.hosts import NASTY, HostProcess, wait_until
from walk.test_attachments import A_PIXEL

AGENTS = """
default_agent: echo
agents:
  echo: {runner: "plugin:paddock/echo/default"}
  helper: {runner: "plugin:paddock/local-agent/default", config: {model: demo}}
  slow: {runner: "plugin:test/slow/default"}
"""
PLUGINS = (NASTY,)
JOB = {"name": "news", "prompt": "What is new?", "cron": "0 9 * * *", "timeZone": "UTC"}


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def threads(client: httpx.Client, **query: str) -> list[dict[str, Any]]:
    return client.get("/api/v1/agent/sessions", params=query).json()["sessions"]


def ended(client: httpx.Client, task_id: str) -> bool:
    return client.get(f"/api/v1/agent/runs/{task_id}").json()["status"] == "completed"


@pytest.mark.spec("http/take-over")
def test_what_dev_said_is_taken_over_by_the_first_user_with_a_key(new_host: Callable[..., HostProcess]) -> None:
    host = new_host(agents=AGENTS, plugins=PLUGINS).start()
    with host.client() as dev:
        tasks = [host.post(f"walrus number {number}").json() for number in range(3)]
        for task in tasks:
            host.events(task["taskId"])
        file = dev.post("/api/v1/agent/attachments", files={"file": ("a.png", A_PIXEL, "image/png")}).json()
        job = dev.post("/api/v1/automations", json=JOB).json()
        fired = dev.post(f"/api/v1/automations/{job['jobId']}/run").json()
        host.events(fired["taskId"])
        dev.patch("/api/v1/users/me", json={"profile": {"settings": {"timezone": "Asia/Tokyo"}}})
        dev.patch(f"/api/v1/agent/sessions/{tasks[0]['threadId']}", json={"title": "Tusks", "archived": True})
        assert len(threads(dev, query="walrus")) == 3
        waiting = dev.get("/api/v1/take-over").json()
        assert waiting == {"user": "dev", "workspace": "default", "conversations": 4, "automations": 1}

        # One is still at work: it stays, and follows when it has ended.
        slow = host.post("hang", agent="slow").json()
        wait_until(lambda: host.run(slow["taskId"])["status"] == "running", what="the run beginning")
        first = dev.post("/api/v1/take-over", json={"user": "ann"}).json()
        assert first == {"conversations": 4, "busy": 1, "left": 1}
        assert [one["threadId"] for one in threads(dev)] == [slow["threadId"]]
        assert dev.get(f"/api/v1/agent/history?threadId={tasks[1]['threadId']}").status_code == 404
        dev.post(f"/api/v1/agent/runs/{slow['taskId']}/cancel")
        wait_until(lambda: host.run(slow["taskId"])["status"] == "cancelled", what="the run ending")

        def rest() -> bool:
            return dev.post("/api/v1/take-over", json={"user": "ann"}).json()["left"] == 0

        wait_until(rest, what="the rest following")
        assert dev.get("/api/v1/take-over").json()["conversations"] == 0
        key = dev.post("/api/v1/api-keys", json={"user": "ann", "role": "admin"}).json()["key"]

    with host.client(headers=headers(key)) as ann:
        found = {one["threadId"] for one in threads(ann)}
        assert found == {one["threadId"] for one in [*tasks, slow, fired]}
        said = ann.get(f"/api/v1/agent/history?threadId={tasks[1]['threadId']}").json()["messages"]
        assert [one["content"] for one in said] == ["walrus number 1", "walrus number 1"]
        assert len(threads(ann, query="walrus")) == 3
        assert ann.get(f"/api/v1/agent/attachments/{file['attachmentId']}").status_code == 200
        [mine] = ann.get("/api/v1/automations").json()["automations"]
        again = ann.post(f"/api/v1/automations/{mine['jobId']}/run").json()
        assert again["threadId"] == fired["threadId"]
        assert ann.get("/api/v1/users/me").json()["profile"]["settings"]["timezone"] == "Asia/Tokyo"
        story = ann.get(f"/api/v1/agent/runs/{tasks[1]['taskId']}/story").json()
        assert story["run"]["userId"] == "ann"
        said = {"messages": [{"id": "m", "role": "user", "content": "on"}], "forwardedProps": {"runtime_mode": "chat"}}
        later = ann.post("/api/v1/agent/runs", json={"threadId": tasks[1]["threadId"], "runId": "later", **said})
        assert (later.status_code, later.json()["created"]) == (202, False)
        rows = ann.get("/api/v1/audit", params={"action": "session.take_over"}).json()["decisions"]
        assert {row["resource"] for row in rows} == found
        why = "from dev to ann, by an operator"
        assert {(row["actor"], row["reason"]) for row in rows} == {("user:dev", why)}
        # A workspace's administrator does not run the host.
        refused = ann.post("/api/v1/take-over", json={"user": "eve"})
        assert (refused.status_code, "paddock keys take-over" in refused.json()["detail"]) == (403, True)
        assert ann.get("/api/v1/take-over").status_code == 403
        for task in (later.json(), again):
            wait_until(lambda task=task: ended(ann, task["taskId"]), what="the last runs ending")
