"""Which commands an answer recommends, in every form that answers have; and which it only names to warn of them."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders.stated_text import statements

NOUNS = ("serial", "netboot", "power-cycle", "power-state", "config")


def told(text):
    return [" ".join(one.words) for one in statements(text, "labd", NOUNS) if not one.denied]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Run `labd serial watch pico`, then `labd serial log pico --since <seq>`.",
         ["labd serial watch pico", "labd serial log pico --since 〈seq〉"]),
        ("```sh\n$ labd config show && labd serial watch pico | head  # look\n```",
         ["labd config show", "labd serial watch pico", "head"]),
        ("```\nlabd serial log pico \\\n  --since <n> --tail 5\n```", ["labd serial log pico --since 〈n〉 --tail 5"]),
        ('```\ncp k "$(labd netboot tftp-root pico)/k"\n```', ["labd netboot tftp-root pico", "cp k $SUBSTITUTED/k"]),
        ("1. labd serial watch pico\n2) **labd flash pico**", ["labd serial watch pico", "labd flash pico"]),
        ("| 1 | `labd power-cycle pico` |", ["labd power-cycle pico"]),
        ("Run labd serial watch pico and then look.", ["labd serial watch pico"]),
        ("labd is a bench. labd does not flash.", []),
        ("There is no `labd flash`, `labd ssh` or `labd burn`.", []),
        ("Don't use `labd power-cycle`; read with `labd power-state pico`.", ["labd power-state pico"]),
        ("`labd flash` does not exist.", []),
        ("Instead of `labd flash pico`, type `labd netboot start pico`.", ["labd netboot start pico"]),
        ("It isn't captured until you run `labd serial watch pico`.", ["labd serial watch pico"]),
        ("Not up? If it is not up, run `labd serial watch pico`.", ["labd serial watch pico"]),
        ("There are no such commands as:\n```\nlabd flash\n```\nUse:\n```\nlabd config show\n```",
         ["labd config show"]),
    ],
)  # fmt: skip
def test_what_an_answer_recommends(text, found):
    assert told(text) == found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([*"`~$<>|()\\\n'\"#.,: ", "labd ", "serial ", "no ", "```\n"]), max_size=300).map("".join)
)
def test_any_text_is_read_without_a_traceback(text):
    statements(text, "labd", NOUNS)


@pytest.mark.parametrize("part", ["labd serial ", "`", "no, ", "|", "$( ", "```\n", "`labd x` is not, no "])
def test_a_hostile_answer_takes_no_longer_than_its_length(part):
    began = time.process_time()  # of this process: the machine may be busy
    statements(part * (200_000 // len(part)), "labd", NOUNS)
    assert time.process_time() - began < 8
