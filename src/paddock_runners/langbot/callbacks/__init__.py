"""Calls a LangBot runner may make during a run, each mapped to a host call. The host's gate decides what is granted. A
call that is not in this table, or names no live run of its own process, is refused.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping

from paddock_runners.langbot.callbacks import history, keeping, models, replies
from paddock_runners.langbot.callbacks.asking import Asking, Data, Work
from paddock_runners.langbot.refusal import not_offered, refusal_of
from paddock_sdk import HostCallError

__all__ = ["TABLE", "Asking", "answer"]

TABLE: Mapping[str, Work] = {
    "invoke_llm": models.invoke,
    "count_tokens": models.count_tokens,
    "invoke_rerank": models.rerank,
    "get_tool_detail": models.tool_detail,
    "call_tool": models.call_tool,
    "retrieve_knowledge_base": models.retrieve,
    "retrieve_knowledge": models.retrieve,
    "get_langbot_version": history.version,
    "get_prompt": history.prompt,
    "history_page": history.page,
    "history_search": history.search,
    "event_get": history.event,
    "event_page": history.events,
    "steering_pull": history.steering,
    "run_get": history.run_record,
    "state_get": keeping.state_get,
    "state_set": keeping.state_set,
    "state_delete": keeping.state_delete,
    "state_list": keeping.state_list,
    **keeping.storage("plugin"),
    **keeping.storage("workspace"),
    "reply_stream": replies.reply_stream,
    "call_platform_api": replies.platform_api,
}


def answer(run: Asking, action: str, data: Data) -> Awaitable[Data] | AsyncIterator[Data]:
    """Raises RefusedError for what is not offered; the rest is granted or refused by the host."""
    if action == "invoke_llm_stream":
        return models.stream(run, data)
    work = TABLE.get(action)
    if work is None:
        raise not_offered(action)
    return _ask(work, run, data)


async def _ask(work: Work, run: Asking, data: Data) -> Data:
    try:
        return await work(run, data)
    except HostCallError as error:
        raise refusal_of(error) from error
