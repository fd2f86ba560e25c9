"""Behaves as its message says: slowly, badly, or not at all. One runner for every way a run can go wrong."""

import asyncio
import os
import signal
import subprocess
import sys
import time

from paddock_sdk import AgentRunner, Results, completed, delta, handover, message, serve


class Slow(AgentRunner):
    capabilities = {"steering": True}  # noqa: RUF012
    permissions = {"storage": ["plugin"], "history": ["page"]}  # noqa: RUF012

    async def run(self, ctx, api) -> Results:
        word, _, rest = (ctx.input.text or "").partition(" ")
        match word:
            case "count":  # `count 100 0.01`: so many pieces, so long apart
                times, pause = rest.split()
                for number in range(int(times)):
                    yield delta(f"{number} ")
                    await asyncio.sleep(float(pause))
            case "crash":
                yield delta("half a ")
                await asyncio.sleep(0.2)
                os._exit(3)
            case "hang":
                await asyncio.sleep(3600)
            case "deaf":  # hears no cancel
                while True:
                    try:
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        yield delta("no")
            case "block":  # holds its whole process
                yield delta("blocking")
                await asyncio.sleep(0.1)
                time.sleep(float(rest or 60))
            case "children":  # a child that forks twice, leaves the session and ignores TERM
                code = (
                    "import os, signal, time\n"
                    "if os.fork(): os._exit(0)\n"
                    "os.setsid()\n"
                    "if os.fork(): os._exit(0)\n"
                    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                    f"open({rest!r}, 'w').write(str(os.getpid()))\n"
                    "time.sleep(3600)\n"
                )
                subprocess.run([sys.executable, "-c", code], check=True)
                yield delta("born")
                await asyncio.sleep(3600)
            case "print":
                print("a stray line", flush=True)
                os.write(1, b"another\n")
                yield message("printed")
            case "remember":
                seen = await api.state.get("conversation", "count")
                count = (seen or 0) + 1
                await api.state.set("conversation", "count", count)
                page = await api.history.page(before_cursor=ctx.context.latest_cursor)
                yield message(f"{count} {len(page.items)}")
            case "handover":  # `handover echo`: asks for this agent to go on
                yield message("That is not for me.")
                yield handover(rest, reason="not my trade", summary="nothing yet")
            case "listen":  # says what it is told in the middle of its run
                yield delta("listening ")
                await api.steering.wait(30)
                yield delta(" and ".join(item.input.text or "" for item in await api.steering.pull()))
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                yield message(ctx.input.text or "")
        yield completed()


serve(Slow())
