"""A record from a bundle: the recorder's commands in their order, what they printed as far as that is known."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graders import contract
from graders.attempts import acted, attempt, facts
from graders.bundle_view import Bundle
from graders.signs import Signs, load
from graders.taxonomy import Facts
from tests.graders.bundles import Maker, config

SIGNS = load("""
[[empty]]
command = "target list"
json = "targets"
stdout = "blank"
[hint]
stderr = ['; try: (?P<command>labd [^;]+)']
""")
LONG = '{"query": "' + "x" * 600 + '", "targets": []}'


def maker(**trial: Any) -> Maker:
    """A trial in which nothing ran yet."""
    made = config()
    made.records, made.calls = [], []
    made.trial |= {"scenario": "C1", "number": 2, "id": "C1.cold.reference.2", "agent": "reference",
                   "condition": "cold", "versions": {"labd": "0.1.0"}, "build": "ab" * 32, **trial}  # fmt: skip
    return made


def known(bundle: Bundle) -> list[Facts]:
    return list(facts(bundle, acted(bundle)))


def said(line: str, stdout: str, stderr: str = "", **more: Any) -> dict[str, Any]:
    """An entry of a scripted agent's own list."""
    return {"argv": ["labd", *line.split()], "stdout": stdout, "stderr": stderr, "cut": 0, "t": 0.0, "duration_s": 0.1,
            **more}  # fmt: skip


def shell(number: int, command: str, output: str, **more: Any) -> dict[str, Any]:
    """A call of a transcript."""
    return {"n": number, "id": f"c{number}", "thread": "main", "tool": "Bash", "kind": "shell", "command": command,
            "state": "done", "is_error": False, "output": output, "exit_code": 0, **more}  # fmt: skip


def transcript(bundle: Bundle, *calls: dict[str, Any], **more: Any) -> Bundle:
    told = {"schema": "labd-transcript/1", "calls": list(calls), **more}
    (bundle.directory / "transcript.json").write_text(json.dumps(told))
    return Bundle(bundle.directory)


def test_the_recorders_commands_are_the_calls_and_prose_is_never_asked(tmp_path: Path) -> None:
    made = maker()
    made.answer = "I ran labd power-cycle pico three times."
    made.run("target list", stdout_head="pico\n", stderr_head="", duration_ms=12.5)
    made.run("target list", code=4, stdout_head="", stderr_head="labd: no; try: labd init\n")
    record = attempt(made.write(tmp_path), SIGNS)
    assert [(one.argv, one.exit_code, one.cls) for one in record.calls] == [
        (("target", "list"), 0, None), (("target", "list"), 4, "B")]  # fmt: skip
    assert (record.program_calls, record.question_id, record.repeat, record.trial) == (
        2,
        "C1",
        2,
        "C1.cold.reference.2",
    )
    assert record.subject == {"name": "labd", "version": "0.1.0", "sha256": "ab" * 32}
    assert record.calls[0].duration_s == 0.0125 and record.tools_used == {}
    assert contract.load(contract.write(record)) == record
    assert json.loads(contract.write(record))["labd_calls"] == 2


def test_a_killed_command_is_a_call_whose_exit_code_nobody_knows(tmp_path: Path) -> None:
    """The reference's recorder writes when a command has ended: a killed one is not there at all."""
    made = maker()
    made.run("serial watch pico", ended=False)
    (call,) = attempt(made.write(tmp_path), SIGNS).calls
    assert (call.exit_code, call.cls, call.evidence) == (None, "A", "exit code unknown")


def test_a_stream_that_its_caller_left_is_not_the_programs_failure(tmp_path: Path) -> None:
    made = maker()
    made.run("serial log pico -f", code=None, stdout_head="[…] #1 boot\n", stderr_head="")
    made.run("serial log pico -f", code=None, stdout_head="", stderr_head="", face="recorder")
    left, unknown = attempt(made.write(tmp_path), SIGNS).calls
    assert (left.exit_code, left.outcome, left.cls) == (None, "error", "F")
    assert left.evidence == "stopped from outside by its caller, who had gone"
    assert (unknown.exit_code, unknown.cls, unknown.evidence) == (None, "A", "exit code unknown")


def test_what_laid_the_desk_is_no_call_of_the_agents(tmp_path: Path) -> None:
    made = maker()
    made.scenario["loopback"] = {"prepared": [{"run": "labd serial watch dut"}]}
    made.run("serial watch dut", t=100.0, stdout_head="open")
    made.run("serial watch dut", t=101.0, stdout_head="open already")
    made.calls = [said("serial watch dut", "open", t=99.9, duration_s=0.5)]
    record = attempt(made.write(tmp_path), SIGNS)
    assert [one.stdout_head for one in record.calls] == ["open already"] and record.program_calls == 1


def test_an_answer_is_judged_whole_where_a_list_goes_on_as_the_record_begins(tmp_path: Path) -> None:
    made = maker()
    made.run("target list", stdout_head=LONG[:512], stderr_head="")
    alone = attempt(made.write(tmp_path), SIGNS)
    made.calls = [said("target list", LONG)]
    told = attempt(made.write(tmp_path), SIGNS)
    assert [one.cls for one in (*alone.calls, *told.calls)] == [None, "C"]
    made.calls = [said("target list", "something else")]
    assert known(made.write(tmp_path))[0].stdout == LONG[:512]


def test_two_commands_of_the_same_words_keep_their_own_outputs(tmp_path: Path) -> None:
    made = maker()
    for text in ("a" * 512, "b" * 512):
        made.run("target list", stdout_head=text, stderr_head="")
    made.calls = [said("target list", "b" * 900)]  # the list is of one of them, and its beginning says of which
    first, second = known(made.write(tmp_path))
    assert (first.stdout, first.whole) == ("a" * 512, False) and (second.stdout, second.whole) == ("b" * 900, True)


def test_of_a_step_that_was_tried_again_the_last_output_is_the_last_trys(tmp_path: Path) -> None:
    made = maker()
    for text in ("", "", "c" * 512):
        made.run("target list", stdout_head=text, stderr_head="")
    made.calls = [said("target list", "c" * 900)]
    assert [one.stdout for one in known(made.write(tmp_path))] == ["", "", "c" * 900]


def test_a_character_cut_in_two_by_the_record_is_none_against_the_text(tmp_path: Path) -> None:
    text = "x" * 511 + "é and more"
    made = maker()
    made.run("target list", stderr_head="", stdout_head=text.encode()[:512].decode("utf-8", "surrogateescape"))
    made.calls = [said("target list", text)]
    assert known(made.write(tmp_path))[0].stdout == text


def test_a_transcript_shows_the_whole_where_one_stream_was_blank(tmp_path: Path) -> None:
    made = maker()
    made.run("target list", stdout_head=LONG[:512], stderr_head="")
    made.run("target show x", code=4, stdout_head="", stderr_head="labd: " + "y" * 506)
    made.run("host list", stdout_head="h" * 512, stderr_head="labd: note\n")
    bundle = transcript(
        made.write(tmp_path),
        shell(1, "labd target list", LONG),
        shell(2, "labd target show x", "labd: " + "y" * 506 + "; try: labd target list", exit_code=4),
        shell(3, "labd host list", "labd: note\n" + "h" * 900),
    )
    first, second, third = known(bundle)
    assert (first.stdout, first.stderr, first.whole) == (LONG, "", True)
    assert second.stderr.endswith("; try: labd target list") and second.stdout == ""
    assert (third.stdout, third.whole) == ("h" * 512, False)
    assert [one.cls for one in attempt(bundle, SIGNS).calls] == ["C", "B", None]


def test_tools_are_counted_off_the_transcript_web_searches_too(tmp_path: Path) -> None:
    bundle = transcript(
        maker().write(tmp_path),
        shell(1, "ls", ""), shell(2, "ls", ""), {"n": 3, "id": "w", "tool": "WebSearch", "kind": "web"}, {"n": 4},
        model="m-1", first={"tools": ["Bash", "WebSearch"], "skills": None},
    )  # fmt: skip
    record = attempt(bundle, SIGNS)
    assert record.tools_used == {"Bash": 2, "WebSearch": 1} and record.program_calls == 0
    assert (record.config["model"], record.config["tools"]) == ("m-1", ["Bash", "WebSearch"])
    assert "skills" not in record.config


def test_the_configuration_of_the_run_is_in_the_record(tmp_path: Path) -> None:
    made = maker(options={"model": "x", "isolation": "home"}, program={"product": "claude", "version": "2.1",
                 "argv": ["claude", "-p", "--setting-sources", "project"]}, hashes={"graders": "00"})  # fmt: skip
    bundle = made.write(tmp_path)
    checks = {"checks": [{"name": "first record", "ok": True, "detail": ""}]}
    (bundle.directory / "condition.json").write_text(json.dumps(checks))
    told = attempt(bundle, SIGNS).config
    assert told["argv"][-2:] == ["--setting-sources", "project"] and told["condition"] == checks
    assert (told["product"], told["version"], told["options"]["isolation"]) == ("claude", "2.1", "home")


def test_silence_is_until_the_first_byte_or_all_the_time_where_none_came(tmp_path: Path) -> None:
    made = maker()
    made.run("a", stdout_head="x", stderr_head="", duration_ms=90_000.0, first_byte_ms=80_000.0)
    made.run("b", stdout_head="", stderr_head="", duration_ms=70_000.0, first_byte_ms=None)
    made.run("c", stdout_head="x", stderr_head="", duration_ms=70_000.0)
    made.run("d", stdout_head=None, stderr_head=None, duration_ms=70_000.0)  # a terminal: nobody saw what it printed
    assert [one.silent_s for one in known(made.write(tmp_path))] == [80.0, 70.0, None, None]
    assert [one.cls for one in attempt(made.write(tmp_path), Signs()).calls][:2] == ["D", "D"]


def test_flags_that_take_a_value_before_the_command_come_from_the_live_reference(tmp_path: Path) -> None:
    bundle = maker().write(tmp_path)
    surface = {"globals": [{"flags": ["--lab"], "takes_value": True}, {"flags": ["--json"], "takes_value": False}]}
    (bundle.directory / "surface.json").write_text(json.dumps(surface))
    made = maker()
    made.run("--lab add target list", operation=None, stdout_head="[]", stderr_head="")
    place = made.write(tmp_path)
    (place.directory / "surface.json").write_text(json.dumps(surface))
    assert known(place)[0].valued == {"--lab"}


def test_a_record_can_be_made_of_any_bundle_that_can_be_read(tmp_path: Path) -> None:
    made = maker(number=None, versions=None, build=None, options=None)
    made.answer = made.records = made.calls = None
    record = attempt(made.write(tmp_path), SIGNS)
    assert (record.repeat, record.calls, record.answer.text) == (0, (), "")
    assert contract.validate(json.loads(contract.write(record))) == []


def test_a_trial_without_a_record_or_with_a_torn_one_says_so(tmp_path: Path) -> None:
    made = maker()
    bundle = made.write(tmp_path)
    assert "record" not in attempt(bundle, SIGNS).env
    (bundle.directory / "argv.jsonl").write_bytes(b"{torn")
    assert attempt(Bundle(bundle.directory), SIGNS).env["record"] == "line 1 is no record"
    (bundle.directory / "argv.jsonl").unlink()
    assert attempt(Bundle(bundle.directory), SIGNS).env["record"] == "the trial left no record of commands"


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())
FIELDS = ["code", "signal", "duration_ms", "first_byte_ms", "stdout_head", "stderr_head", "argv", "t", "operation"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.dictionaries(st.sampled_from(FIELDS), ODD), max_size=4))
def test_a_forged_record_of_commands_makes_a_sound_record(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    made = maker()
    made.records = []
    for number, odd in enumerate(lines):
        start = {"rec": "start", "id": f"r{number}", "argv": ["labd", "target", "list"]}
        start |= {name: odd[name] for name in ("t", "operation") if name in odd}
        made.records += [start, {"rec": "end", "id": f"r{number}", **odd}]
    record = attempt(made.write(tmp_path), SIGNS)
    assert len(record.calls) == len(lines)
    data = contract.write(record)
    assert contract.load(data) == record and contract.validate(json.loads(data)) == []


def test_an_answer_beyond_all_measure_is_cut(tmp_path: Path) -> None:
    made = maker()
    made.answer = "x" * 3_000_000
    assert contract.load(contract.write(attempt(made.write(tmp_path), SIGNS))).answer.text == "x" * 100_000


def test_where_both_streams_are_one_a_refusal_guides_and_data_neither_guides_nor_fails(tmp_path: Path) -> None:
    signs = load((Path(__file__).parents[2] / "scenarios" / "atlas" / "signs.toml").read_text(encoding="utf-8"))
    made = maker()
    merged = {"stderr_head": None, "merged": True}
    hint = "atlas: no category 'bus_stop' in places\n  did you mean: bus_station\n"
    made.run("count places --category bus_stop", code=2, stdout_head=hint, **merged)
    made.run("count places --category bus", code=2, stdout_head="atlas: error\n", **merged)
    made.run("country Malta", code=0, stdout_head="atlas: data unavailable: x\n" + hint, **merged)
    made.run("countries", code=7, stdout_head="atlas: data unavailable: countries.tsv: gone\n", **merged)
    made.run("countries", code=0, stdout_head="", duration_ms=90_000.0, **merged)
    assert [one.cls for one in attempt(made.write(tmp_path), signs).calls] == ["B", "A", None, "E", "D"]
