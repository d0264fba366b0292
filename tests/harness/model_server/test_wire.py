"""Each API's wire shape, told by clients made by hand: what a product reads must be there, streamed and whole."""

import json
from typing import Any

import pytest

from tests.harness.model_server.conftest import Client, Serve, events

CALLS = {
    "turn": [
        {
            "text": "I look first; this is a text of more than one piece on the wire.",
            "calls": [{"shell": "labd target list"}, {"tool": "flash_board", "input": {"board": "pico"}}],
            "usage": {"input": 70, "output": 9, "cache_read": 30, "reasoning": 4},
        },
        {"text": "There is pico."},
    ]
}
TEXT = CALLS["turn"][0]["text"]


def anthropic(client: Client, messages: list[Any] | None = None, **more: Any) -> tuple[int, dict[str, str], bytes]:
    body = {"model": "m", "max_tokens": 9, "tools": [{"name": "Bash"}, {"name": "Agent"}],
            "messages": messages or [{"role": "user", "content": "go"}], **more}  # fmt: skip
    return client.post("/v1/messages?beta=true", body)


def test_anthropic_streams_blocks_and_usage(serve: Serve) -> None:
    status, headers, data = anthropic(serve(CALLS), stream=True)
    told = events(data)
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert told[0]["type"] == "message_start" and told[0]["message"]["content"] == []
    assert told[0]["message"]["usage"]["cache_read_input_tokens"] == 30
    parts = [one["delta"] for one in told if one["type"] == "content_block_delta"]
    assert "".join(one["text"] for one in parts if one["type"] == "text_delta") == TEXT
    begun = [one["content_block"] for one in told if one["type"] == "content_block_start"]
    assert [one.get("name") for one in begun] == [None, "Bash", "flash_board"]
    second = [one for one in told if one["type"] == "content_block_delta" and one["index"] == 1]
    given = json.loads("".join(one["delta"]["partial_json"] for one in second))
    assert given["command"] == "labd target list"
    assert told[-2]["delta"]["stop_reason"] == "tool_use" and told[-2]["usage"] == {"output_tokens": 9}
    assert told[-1]["type"] == "message_stop"
    assert data.startswith(b"event: message_start\ndata: ")


def test_anthropic_whole(serve: Serve) -> None:
    answer = json.loads(anthropic(serve(CALLS))[2])
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use", "tool_use"]
    assert (answer["stop_reason"], answer["usage"]["output_tokens"]) == ("tool_use", 9)


def responses(client: Client, given: Any = "go", **more: Any) -> tuple[int, dict[str, str], bytes]:
    tools = [{"type": "function", "name": "exec_command"}, {"type": "web_search"}]
    return client.post("/v1/responses", {"model": "m", "input": given, "tools": tools, **more})


def test_responses_streams_items_and_usage(serve: Serve) -> None:
    told = events(responses(serve(CALLS), stream=True)[2])
    assert [told[0]["type"], told[-1]["type"]] == ["response.created", "response.completed"]
    assert "".join(one["delta"] for one in told if one["type"] == "response.output_text.delta") == TEXT
    items = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    assert [item["type"] for item in items] == ["message", "function_call", "function_call"]
    assert json.loads(items[1]["arguments"])["cmd"] == "labd target list" and items[1]["name"] == "exec_command"
    assert told[-1]["response"]["output"] == items
    usage = told[-1]["response"]["usage"]
    assert (usage["input_tokens"], usage["total_tokens"]) == (100, 109)
    assert usage["input_tokens_details"] == {"cached_tokens": 30}


def test_responses_whole(serve: Serve) -> None:
    answer = json.loads(responses(serve(CALLS))[2])
    assert answer["status"] == "completed" and len(answer["output"]) == 3


def chat(client: Client, messages: list[Any] | None = None, **more: Any) -> tuple[int, dict[str, str], bytes]:
    tools = [{"type": "function", "function": {"name": name}} for name in ("bash", "task")]
    body = {"model": "m", "tools": tools, "messages": messages or [{"role": "user", "content": "go"}], **more}
    return client.post("/v1/chat/completions", body)


def test_chat_streams_deltas_and_usage(serve: Serve) -> None:
    data = chat(serve(CALLS), stream=True)[2]
    told = events(data)
    deltas = [one["choices"][0]["delta"] for one in told if one["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == TEXT
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [(call["index"], call["function"]["name"]) for call in calls] == [(0, "bash"), (1, "flash_board")]
    assert told[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert told[-1]["usage"]["prompt_tokens"] == 100 and data.endswith(b"data: [DONE]\n\n")


def test_chat_whole(serve: Serve) -> None:
    choice = json.loads(chat(serve(CALLS))[2])["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (TEXT, "tool_calls")


def gemini(client: Client, contents: list[Any] | None = None, verb: str = "streamGenerateContent", **more: Any
           ) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
    tools = [{"functionDeclarations": [{"name": "run_shell_command"}]}]
    body = {"contents": contents or [{"role": "user", "parts": [{"text": "go"}]}], "tools": tools, **more}
    return client.post(f"/v1beta/models/gemini-2.5-pro:{verb}?alt=sse", body)


def test_gemini_streams_parts_and_usage(serve: Serve) -> None:
    told = events(gemini(serve(CALLS))[2])
    parts = [part for one in told for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts) == TEXT
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [call["name"] for call in calls] == ["run_shell_command", "flash_board"]
    assert calls[0]["args"]["command"] == "labd target list" and calls[1]["args"] == {"board": "pico"}
    assert [one["candidates"][0].get("finishReason") for one in told][-1] == "STOP"
    assert told[-1]["usageMetadata"]["promptTokenCount"] == 100 and told[0]["modelVersion"] == "gemini-2.5-pro"


def test_gemini_whole(serve: Serve) -> None:
    answer = json.loads(gemini(serve(CALLS), verb="generateContent")[2])
    assert len(answer["candidates"][0]["content"]["parts"]) == 3


ASK = {"anthropic": anthropic, "responses": responses, "chat": chat, "gemini": gemini}


@pytest.mark.parametrize("api", ASK)
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_an_error_has_its_status_its_wait_and_its_words(serve: Serve, api: str, status: int) -> None:
    script = {"turn": [{"error": status, "times": 1, "retry_after": 2, "message": "no more", "text": "back"}]}
    client = serve(script)
    code, headers, data = ASK[api](client)
    assert (code, headers["retry-after"], json.loads(data)["error"]["message"]) == (status, "2", "no more")
    code, headers, data = ASK[api](client)
    assert code == 200 and b"back" in data and "retry-after" not in headers
    assert [one["status"] for one in client.logged()] == [status, 200]


def talks(output: str) -> dict[str, Any]:
    """The conversation after one call of each API, as its product sends it."""
    return {
        "anthropic": [
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "call_1_0"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1_0",
                                          "content": [{"type": "text", "text": output}]}]},
        ],
        "responses": [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "function_call", "call_id": "call_1_0"},
            {"type": "function_call_output", "call_id": "call_1_0",
             "output": f"Chunk ID: 1\nProcess exited with code 0\nOutput:\n{output}"},
        ],
        "chat": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "x", "tool_calls": [{"id": "call_1_0"}]},
            {"role": "tool", "tool_call_id": "call_1_0", "content": output},
        ],
        "gemini": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command"}}]},
            {"role": "user", "parts": [{"functionResponse": {"response": {
                "output": f"Output: {output}\nExit Code: 3"}}}]},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("api", ASK)
def test_the_answer_can_quote_what_the_last_call_printed(serve: Serve, api: str) -> None:
    client = serve({"turn": [{"shell": "one"}, {"text": "<{output}>"}]})
    assert "<line 7\\nend>" in ASK[api](client, talks("line 7\nend")[api])[2].decode()


@pytest.mark.parametrize("api", ASK)
def test_a_request_without_tools_is_a_side_call(serve: Serve, api: str) -> None:
    client = serve({"turn": [{"shell": "one"}]})
    data = ASK[api](client, tools=[])[2].decode()
    assert "next_speaker" in data and "one" not in data
    assert client.logged()[0]["turn"] == "side"
