"""One answer in the words of each API, whole and as events. Made from the published formats."""

import json
from collections.abc import Iterator
from typing import Any

from model_server.script import Says

Event = tuple[str | None, Any]


def parts_of(arguments: str) -> list[str]:
    """Arguments as models send them: in pieces that are no JSON by themselves."""
    return [arguments[at : at + 5] for at in range(0, len(arguments), 5)] or [""]


class Chat:
    path = "/v1/chat/completions"

    def error(self, says: Says) -> Any:
        return {"error": {"message": says.error, "type": "scripted", "code": None}}

    def whole(self, says: Says) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": says.text or None}
        if says.thinks:
            message["reasoning_content"] = says.thinks
        if says.calls:
            message["tool_calls"] = [
                {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for at, (name, arguments) in enumerate(says.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if says.calls else says.finish}
        return self._about("chat.completion", [choice]) | {"usage": self._usage(says)}

    def events(self, says: Says) -> Iterator[Event]:
        yield None, self._chunk({"role": "assistant", "content": ""})
        if says.thinks:
            yield None, self._chunk({"reasoning_content": says.thinks})
        for word in says.words:
            yield None, self._chunk({"content": word})
        for at, (name, arguments) in enumerate(says.calls):
            function = {"name": name, "arguments": ""}
            yield (
                None,
                self._chunk(
                    {"tool_calls": [{"index": at, "id": f"call_{at}", "type": "function", "function": function}]}
                ),
            )
            for part in parts_of(arguments):
                yield None, self._chunk({"tool_calls": [{"index": at, "function": {"arguments": part}}]})
        yield None, self._chunk({}, "tool_calls" if says.calls else says.finish)
        yield None, self._about("chat.completion.chunk", []) | {"usage": self._usage(says)}
        yield None, "[DONE]"

    def failure(self, says: Says) -> Event:
        return None, self.error(says)

    def _chunk(self, delta: Any, finish: str | None = None) -> Any:
        return self._about("chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": finish}])

    def _about(self, kind: str, choices: Any) -> Any:
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted", "choices": choices}

    def _usage(self, says: Says) -> Any:
        counted = {"prompt_tokens": says.prompt_tokens, "completion_tokens": says.completion_tokens}
        return counted | {"total_tokens": says.prompt_tokens + says.completion_tokens}


class Responses:
    path = "/v1/responses"

    def error(self, says: Says) -> Any:
        return {"error": {"message": says.error, "type": "scripted", "code": None, "param": None}}

    def whole(self, says: Says) -> Any:
        return self._response(says, "incomplete" if says.finish == "length" else "completed", self._output(says))

    def events(self, says: Says) -> Iterator[Event]:
        for number, (name, about) in enumerate(self._events(says)):
            yield name, {"type": name, "sequence_number": number} | about

    def _events(self, says: Says) -> Iterator[tuple[str, Any]]:
        yield "response.created", {"response": self._response(says, "in_progress", [])}
        if says.thinks:
            where = {"item_id": "rs_0", "output_index": 0, "summary_index": 0}
            yield "response.reasoning_summary_text.delta", where | {"delta": says.thinks}
        for at, item in enumerate(self._output(says)):
            yield "response.output_item.added", {"output_index": at, "item": item}
            where = {"item_id": item["id"], "output_index": at}
            if item["type"] == "message":
                for word in says.words:
                    yield "response.output_text.delta", where | {"content_index": 0, "delta": word, "logprobs": []}
                about = {"content_index": 0, "text": says.text, "logprobs": []}
                yield "response.output_text.done", where | about
            elif item["type"] == "function_call":
                for part in parts_of(item["arguments"]):
                    yield "response.function_call_arguments.delta", where | {"delta": part}
            yield "response.output_item.done", {"output_index": at, "item": item}
        done = self.whole(says)
        yield f"response.{done['status']}", {"response": done}

    def failure(self, says: Says) -> Event:
        about = {"type": "error", "code": "server_error", "message": says.error, "param": None, "sequence_number": 9}
        return "error", about

    def _output(self, says: Says) -> list[Any]:
        items: list[Any] = []
        if says.thinks:
            summary = [{"type": "summary_text", "text": says.thinks}]
            items.append({"id": "rs_0", "type": "reasoning", "summary": summary, "encrypted_content": "sealed"})
        if says.text or not says.calls:
            content = [{"type": "output_text", "text": says.text, "annotations": [], "logprobs": []}]
            items.append(
                {"id": "msg_0", "type": "message", "role": "assistant", "status": "completed", "content": content}
            )
        items += [
            {"id": f"fc_{at}", "type": "function_call", "call_id": f"call_{at}", "arguments": arguments}
            | self._named(name)
            | {"status": "completed"}
            for at, (name, arguments) in enumerate(says.calls)
        ]
        return items

    def _named(self, name: str) -> dict[str, str]:
        """A tool of a namespace is written `namespace.tool`."""
        namespace, dot, tool = name.partition(".")
        return {"namespace": namespace, "name": tool} if dot else {"name": name}

    def _response(self, says: Says, status: str, output: Any) -> Any:
        usage = {
            "input_tokens": says.prompt_tokens,
            "output_tokens": says.completion_tokens,
            "total_tokens": says.prompt_tokens + says.completion_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "scripted",
            "status": status,
            "output": output,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage if status != "in_progress" else None,
        }


class Anthropic:
    path = "/v1/messages"

    def error(self, says: Says) -> Any:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        return {"type": "error", "error": {"type": kinds.get(says.status, "api_error"), "message": says.error}}

    def whole(self, says: Says) -> Any:
        usage = {"input_tokens": says.prompt_tokens, "output_tokens": says.completion_tokens}
        return self._message(self._blocks(says), self._reason(says), usage)

    def events(self, says: Says) -> Iterator[Event]:
        for name, about in self._events(says):
            yield name, {"type": name} | about

    def _events(self, says: Says) -> Iterator[tuple[str, Any]]:
        usage = {"input_tokens": says.prompt_tokens, "output_tokens": 1}
        yield "message_start", {"message": self._message([], None, usage)}
        yield "ping", {}
        for at, block in enumerate(self._blocks(says)):
            empty = {"text": {"text": ""}, "tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""}}
            yield "content_block_start", {"index": at, "content_block": block | empty[block["type"]]}
            for delta in self._deltas(says, block):
                yield "content_block_delta", {"index": at, "delta": delta}
            yield "content_block_stop", {"index": at}
        delta = {"stop_reason": self._reason(says), "stop_sequence": None}
        yield "message_delta", {"delta": delta, "usage": {"output_tokens": says.completion_tokens}}
        yield "message_stop", {}

    def failure(self, says: Says) -> Event:
        return "error", {"type": "error", "error": {"type": "overloaded_error", "message": says.error}}

    def _deltas(self, says: Says, block: Any) -> Iterator[Any]:
        if block["type"] == "text":
            yield from ({"type": "text_delta", "text": word} for word in says.words)
        elif block["type"] == "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        else:
            given = dict(says.calls)[block["name"]]
            yield from ({"type": "input_json_delta", "partial_json": part} for part in parts_of(given))

    def _blocks(self, says: Says) -> list[Any]:
        blocks: list[Any] = []
        if says.thinks:
            blocks.append({"type": "thinking", "thinking": says.thinks, "signature": "signed"})
        if says.text or not says.calls:
            blocks.append({"type": "text", "text": says.text})
        for at, (name, arguments) in enumerate(says.calls):
            try:
                given = json.loads(arguments)
            except ValueError:
                given = {}
            blocks.append({"type": "tool_use", "id": f"call_{at}", "name": name, "input": given})
        return blocks

    def _reason(self, says: Says) -> str:
        return "tool_use" if says.calls else {"stop": "end_turn", "length": "max_tokens"}[says.finish]

    def _message(self, content: Any, reason: str | None, usage: Any) -> Any:
        about = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_sequence": None}
        return about | {"content": content, "stop_reason": reason, "usage": usage}


class Gemini:
    """Google's; whether it is streamed is said in the address."""

    path = "/v1beta/models/{asked:path}"

    def error(self, says: Says) -> Any:
        return {"error": {"code": says.status, "message": says.error, "status": "SCRIPTED"}}

    def whole(self, says: Says) -> Any:
        calls = [self._call(*call) for call in says.calls]
        return self._about([*([{"text": says.text}] if says.text else []), *calls], "STOP")

    def events(self, says: Says) -> Iterator[Event]:
        for word in says.words:
            yield None, self._about([{"text": word}])
        yield None, self._about([self._call(*call) for call in says.calls] or [{"text": ""}], "STOP")

    def failure(self, says: Says) -> Event:
        return None, self.error(says)

    def _call(self, name: str, arguments: str) -> Any:
        return {"functionCall": {"name": name, "args": json.loads(arguments)}}

    def _about(self, parts: list[Any], finish: str | None = None) -> Any:
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
        if finish is None:
            return {"candidates": [candidate]}
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
        return {"candidates": [{**candidate, "finishReason": finish}], "usageMetadata": usage}
