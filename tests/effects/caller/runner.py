"""Makes the one kind of host call that it is told to, and writes down what it hears, line by line.

It is as naive as a runner can be: what it is told may be tried again, it tries again.
"""

import itertools
import json
import os
from pathlib import Path

from paddock_sdk import AgentRunner, HostCallError, completed, message, serve

TRIES = 3


class Caller(AgentRunner):
    permissions = {  # noqa: RUF012 - as authors write it
        "models": ["invoke", "stream"],
        "tools": ["detail", "call"],
        "storage": ["plugin"],
        "artifacts": ["create"],
        "platform_api": ["message.edit"],
    }

    async def run(self, ctx, api):
        asked = json.loads(ctx.text)
        Path(asked["pid"]).write_text(str(os.getpid()))
        kind, log = asked["kind"], Path(asked["log"])
        if kind == "a message":
            yield message("delivered?")
        elif kind in WRITES:
            for number in itertools.count():
                if Path(asked["enough"]).exists():
                    break
                await heard(log, number, lambda number=number: WRITES[kind](api, f"n{number}"))
        else:
            await heard(log, 0, lambda: effect(api, kind))
        yield completed()


async def heard(log, number, call):
    for _ in range(TRIES):
        told = await said(call)
        with log.open("a") as file:
            file.write(json.dumps({"number": number, "told": told}) + "\n")
        if told != "retryable":
            return


async def said(call):
    try:
        answer = await call()
    except HostCallError as error:
        if error.retryable:
            return "retryable"
        return "unknown" if error.outcome_unknown else error.code
    return "unknown" if "is not known" in json.dumps(getattr(answer, "result", None)) else "ok"


async def effect(api, kind):
    asked = [{"role": "user", "content": kind}]
    if kind == "models.invoke":
        return await api.models.invoke("real", asked)
    if kind == "models.stream":
        return [piece async for piece in api.models.stream("real", asked)]
    if kind == "a platform action":
        return await api.platform.request_action("message.edit", {}, {"text": "better"})
    return await api.tools.call(kind, {})


WRITES = {
    "state.set": lambda api, key: api.state.set("conversation", key, 1),
    "storage.set": lambda api, key: api.storage.set("plugin", key, b"x"),
    "artifacts.create": lambda api, key: api.artifacts.create(b"x", name=key),
}

serve(Caller())
