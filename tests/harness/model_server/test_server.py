"""The server itself: its log, its faults, its routing, its end."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from harness.cli import main
from harness.model_server import ModelServer, ScriptError, from_scenario, load
from harness.model_server.script import parse
from harness.scenario import Step
from tests.harness.conftest import make_scenario
from tests.harness.model_server.conftest import Serve, events
from tests.harness.model_server.test_wire import anthropic, chat, gemini, responses, talks


def test_keys_are_blanked_wherever_they_stand(serve: Serve) -> None:
    client = serve({"turn": [{"text": "hello"}]})
    body = {"messages": [{"role": "user", "content": "my key is sk-very-secret"}]}
    client.post("/v1/messages", body, {"x-api-key": "sk-very-secret", "authorization": "Bearer tok-12345678"})
    client.post("/v1beta/models/m:generateContent?key=abc", {})
    text = client.log.read_text()
    assert "sk-very" not in text and "tok-1234" not in text and "key=abc" not in text
    assert "my key is [redacted]" in text


def test_it_listens_on_loopback_alone_and_ends_with_its_block(tmp_path: Path) -> None:
    with ModelServer(parse({"turn": [{"text": "x"}]}, {})) as model:
        assert model.url.startswith("http://127.0.0.1:")
        url = model.url + "/v1/models"
        assert json.load(urllib.request.urlopen(url))["data"]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url)


def test_a_stalled_stream_ends_with_the_server(tmp_path: Path) -> None:
    began = time.monotonic()
    with ModelServer(parse({"turn": [{"text": "x", "stall_s": 60}]}, {})) as model:
        request = urllib.request.Request(model.url + "/v1/chat/completions",
                                         b'{"stream": true, "tools": [{"function": {"name": "bash"}}]}')  # fmt: skip
        assert urllib.request.urlopen(request).readline().startswith(b"data: ")
    assert time.monotonic() - began < 10


def test_a_cut_stream_breaks_in_its_middle_and_is_whole_when_asked_again(serve: Serve) -> None:
    client = serve({"turn": [{"text": "y" * 500, "cut": True, "times": 1}]})
    assert events(anthropic(client, stream=True)[2])[-1]["type"] == "content_block_delta"
    assert events(anthropic(client, stream=True)[2])[-1]["type"] == "message_stop"


def test_threads_are_told_by_their_first_text_and_do_not_mix(serve: Serve) -> None:
    script = {"turn": [{"calls": [{"agent": "SUBTASK count"}]}, {"text": "main end"}],
              "thread": [{"match": "SUBTASK", "turn": [{"shell": "ls"}, {"text": "sub end"}]}]}  # fmt: skip
    client = serve(script)
    first = json.loads(anthropic(client)[2])["content"][0]
    assert (first["name"], first["input"]["prompt"]) == ("Agent", "SUBTASK count")
    sub = [{"role": "user", "content": "SUBTASK count"}]
    assert json.loads(anthropic(client, sub)[2])["content"][0]["input"]["command"] == "ls"
    assert json.loads(anthropic(client, talks("3")["anthropic"])[2])["content"][0]["text"] == "main end"
    sub += talks("a")["anthropic"][1:]
    assert json.loads(anthropic(client, sub)[2])["content"][0]["text"] == "sub end"
    assert [one["turn"] for one in client.logged()] == ["main 1", "SUBTASK 1", "main 2", "SUBTASK 2"]


def test_parallel_calls_told_each_with_its_result_are_one_turn(serve: Serve) -> None:
    script = {"turn": [{"calls": [{"shell": "a"}, {"shell": "b"}]}, {"text": "second"}, {"text": "third"}]}
    talk = [{"role": "user", "content": "go"}]
    for name in ("call_1_0", "call_1_1"):
        talk += [{"type": "function_call", "call_id": name},
                 {"type": "function_call_output", "call_id": name, "output": "ok"}]  # type: ignore[list-item]  # fmt: skip
    assert b"second" in responses(serve(script), talk)[2]


def test_a_turn_waits_for_its_output_and_saves_from_it(serve: Serve) -> None:
    script = {"turn": [{"shell": "look", "until": "ready", "save": {"seq": r"#(\d+)"}}, {"shell": "since {seq}"}]}
    client = serve(script)
    assert b'"cmd\\": \\"look' in responses(client, talks("not yet")["responses"])[2]
    assert b'"cmd\\": \\"since 41' in responses(client, talks("ready #41")["responses"])[2]


def test_a_turn_is_for_one_case_alone(serve: Serve) -> None:
    script = {"turn": [
        {"shell": "count {nonce}", "save": {"word": 'did you mean "(.+)"'}},
        {"told": "doubt every zero", "unless": "did you mean", "shell": "values"},
        {"when": "did you mean", "shell": "count {word}"},
        {"unless": "^[1-9]", "text": "there is none"},
        {"text": "there are {output}"},
    ]}  # fmt: skip

    def next_said(first: str, *outputs: str) -> str:
        messages: list[dict[str, object]] = [{"role": "user", "content": first}]
        for number, output in enumerate(outputs):
            call = {"id": f"c{number}_0", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{number}_0", "content": output})
        told = json.loads(chat(serve(script, {"nonce": "x"}), messages)[2])["choices"][0]["message"]
        calls = told.get("tool_calls")
        return json.loads(calls[0]["function"]["arguments"])["command"] if calls else told["content"]

    assert next_said("how many?") == "count x"
    assert next_said("how many?", '0, did you mean "y"?') == "count y"
    assert next_said("how many?", '0, did you mean "y"?', "7") == "there are 7"
    assert next_said("how many?", "0") == "there is none"
    assert next_said("doubt every zero. how many?", "0") == "values"
    assert next_said("doubt every zero. how many?", "0", "12") == "there are 12"


def test_it_gives_up_waiting_after_its_tries(serve: Serve) -> None:
    client = serve({"turn": [{"shell": "look", "until": "ready", "tries": 1}, {"text": "end"}]})
    assert b"I give up: 'ready' did not come." in responses(client, talks("no")["responses"])[2]


def test_a_tool_that_is_not_offered_is_the_scripts_mistake(serve: Serve) -> None:
    for ask, call in ((gemini, {"agent": "x"}), (chat, {"shell": "x", "background": True})):
        status, _, data = ask(serve({"turn": [{"calls": [call]}]}))
        assert status == 400 and "the script of this model: no tool for" in json.loads(data)["error"]["message"]


def test_background_calls_are_put_in_each_products_words(serve: Serve) -> None:
    client = serve({"turn": [{"calls": [{"shell": "sleep 9", "background": True}]}]})
    assert json.loads(anthropic(client)[2])["content"][0]["input"]["run_in_background"] is True
    assert b'"is_background": true' in gemini(client)[2]


def test_the_reference_of_a_scenario_is_a_script(serve: Serve) -> None:
    scenario = make_scenario(
        "labd target add pico",
        Step("labd serial log pico", save={"seq": r"(?s).*#(\d+)"}),
        Step("labd serial log pico --since {seq}", until="up"),
        Step("only said", stated=True),
    )
    main = from_scenario(scenario, {"nonce": "n"}).threads[-1]
    assert [turn.calls[0].shell for turn in main.turns[:-1]] == [
        "labd target add pico", "labd serial log pico", "labd serial log pico --since '{seq}'"]  # fmt: skip
    assert (main.turns[2].until, main.turns[3].text) == ("up", "{output}")


def test_a_stated_reference_is_said(serve: Serve) -> None:
    scenario = make_scenario("labd netboot start {nonce}", tier="t0", grader={"type": "stated"})
    assert from_scenario(scenario, {"nonce": "n1"}).threads[0].turns[0].text == "```sh\nlabd netboot start n1\n```"


@pytest.mark.parametrize(("text", "told"), [
    ("[[turn]]\ntxt = 1", "turn 1: unknown key 'txt'"),
    ("summary = 'x'", "has no turn"),
    ("[[turn]]\nerror = 200", "400 to 599"),
    ("[[turn]]\ncalls = [{}]", "one of shell, agent and tool"),
    ("[[turn]]\nuntil = '('", "until"),
    ("[[turn]]\ntext = 3", "wrong type"),
    ("[[turn]\n", "line 1"),
])  # fmt: skip
def test_a_broken_script_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ScriptError, match=r"s\.toml") as error:
        load(tmp_path / "s.toml")
    assert told in error.value.message


def test_it_runs_by_hand_until_it_is_stopped(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "harness.cli", "model", "reference:C1", "--log", str(tmp_path / "log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        url = process.stdout.readline().strip()
        tools = b'{"tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": "go"}]}'
        answer = json.load(urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", tools)))
        process.terminate()
        assert process.wait(10) == 0
        assert "never a model's skill" in process.stderr.read()
    assert answer["content"][0]["input"]["command"] == "labd target add pico"
    assert json.loads((tmp_path / "log").read_text())["turn"] == "main 1"


def test_by_hand_it_says_what_is_wrong_with_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "/nowhere/s.toml"]) == 1
    assert "/nowhere/s.toml: No such file" in capsys.readouterr().err
    assert main(["model", "reference:C99"]) == 4
    assert "did you mean: C9" in capsys.readouterr().err
