"""A LangBot plugin of the development branch, as far as its wire tells: plain lines, no SDK, no cancel action."""

import itertools
import json
import sys
import threading
import time
from typing import Any

KINDS = {"AgentRunner": "run_agent", "Runner": "run_runner"}
KIND = sys.argv[1] if len(sys.argv) > 1 else "AgentRunner"
numbers = itertools.count(1000)
answers: dict[int, dict[str, Any]] = {}
news = threading.Condition()
writing = threading.Lock()


def write(message: dict[str, Any]) -> None:
    text = json.dumps(message)
    with writing:
        if len(text) <= 16384:
            print(text, flush=True)
            return
        print(json.dumps({"type": "chunk_start", "total_size": len(text)}))
        for offset in range(0, len(text), 16384):
            print(json.dumps({"type": "chunk_data", "data": text[offset : offset + 16384], "offset": offset}))
        print(json.dumps({"type": "chunk_end"}), flush=True)


def ask(action: str, /, **data: object) -> dict[str, Any]:
    number = next(numbers)
    write({"seq_id": number, "action": action, "data": data})
    with news:
        assert news.wait_for(lambda: number in answers, 20), action
        return answers.pop(number)


def said(number: int, kind: str, run_id: str, **data: object) -> None:
    result = {"run_id": run_id, "type": kind, "data": data}
    write({"seq_id": number, "code": 0, "message": "success", "data": result, "chunk_status": "continue"})


def reply(number: int, data: dict[str, Any], status: str = "continue", code: int = 0, message: str = "success") -> None:
    write({"seq_id": number, "code": code, "message": message, "data": data, "chunk_status": status})


def words(number: int, ctx: dict[str, Any], rest: str) -> None:
    run_id = ctx["run_id"]
    said(number, "message.delta", run_id, chunk={"role": "assistant", "content": rest[:2]})
    said(number, "message.delta", run_id, chunk={"role": "assistant", "content": rest[2:]})
    said(number, "run.completed", run_id, finish_reason="stop")


def context(number: int, ctx: dict[str, Any], _: str) -> None:
    said(number, "message.completed", ctx["run_id"], message={"role": "assistant", "content": json.dumps(ctx)})


def call(number: int, ctx: dict[str, Any], rest: str) -> None:
    """Make one call and tell what came of it."""
    action, _, data = rest.partition(" ")
    answer = ask(action, **{"run_id": ctx["run_id"], **json.loads(data or "{}")})
    told = json.dumps({"code": answer["code"], "data": answer["data"]})
    said(number, "message.completed", ctx["run_id"], message={"role": "assistant", "content": told})


def poll(number: int, ctx: dict[str, Any], _: str) -> None:
    """Looks up whether it is still wanted, as this branch's local agent does."""
    said(number, "message.delta", ctx["run_id"], chunk={"role": "assistant", "content": "working"})
    while not ask("run_get", run_id=ctx["run_id"])["data"].get("cancel_requested_at"):
        time.sleep(0.02)
    said(number, "run.failed", ctx["run_id"], error="stopped", code="cancelled")


def deaf(number: int, ctx: dict[str, Any], _: str) -> None:
    said(number, "message.delta", ctx["run_id"], chunk={"role": "assistant", "content": "deaf"})
    time.sleep(3600)


def failing(number: int, ctx: dict[str, Any], rest: str) -> None:
    said(number, "run.failed", ctx["run_id"], code="provider.busy", retryable=True, **{rest: "come back later"})


def run(number: int, ctx: dict[str, Any]) -> None:
    verb, _, rest = str(ctx["input"]["text"]).partition(" ")
    work = {"context": context, "call": call, "poll": poll, "deaf": deaf, "failing": failing}.get(verb)
    if work:
        work(number, ctx, rest)
    else:
        words(number, ctx, str(ctx["input"]["text"]))
    reply(number, {}, "end")


def asked(said: dict[str, Any]) -> None:
    number, action, data = said["seq_id"], said["action"], said["data"]
    if action == KINDS.get(KIND):
        threading.Thread(target=run, args=(number, data["context"]), daemon=True).start()
    elif action == "get_plugin_container":
        runner = {"kind": KIND, "metadata": {"name": "default"}}
        reply(number, {"components": [{"manifest": {"owner": "builtin", "manifest": runner}}]})
    elif action == "initialize_plugin":
        reply(number, {})
    else:
        reply(number, {}, code=1, message=f"Action {action} not found")


def listen() -> None:
    pieces: list[str] = []
    for line in sys.stdin:
        said = json.loads(line)
        if said.get("type") == "chunk_start":
            pieces = []
        elif said.get("type") == "chunk_data":
            assert len(line) < 65536
            pieces.append(said["data"])
        else:
            whole = json.loads("".join(pieces)) if said.get("type") == "chunk_end" else said
            heard(whole)


def heard(said: dict[str, Any]) -> None:
    if "action" in said:
        asked(said)
        return
    with news:
        answers[said["seq_id"]] = said
        news.notify_all()


print("not every line is meant for the host")
write({"seq_id": 1, "action": "register_plugin", "data": {"plugin_container": {}, "prod_mode": True}})
listen()
