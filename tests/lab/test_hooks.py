"""Command strings: what needs a shell is seen, with the form that gets one; what does not is left alone."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.lab.hooks import take_apart, with_shell


@pytest.mark.parametrize(
    "command",
    [
        "shellyplug -d 192.0.2.41 cycle",
        "~/bin/cycle.sh",
        "adb -s ABC123 reboot",
        "sh -c 'a | b > c; d && e $(f) `g` *.x'",
        'bash -lc "echo $HOME"',
        "echo 'a|b;c&d>e<f$g*h?i[j](k)'",
        'echo "a|b;c&d>e<f*h?"',
        "echo a\\|b \\$HOME",
        "curl http://192.0.2.1/relay/0",
        "env A=1 program",
        "program A=1 --b=c",
        "sudo -n uhubctl -a cycle",
        "printf %s {}",
    ],
)
def test_a_plain_command_needs_no_shell(command):
    assert take_apart(command).shell == ""


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("a | b", "a pipe"),
        ("a; b", "a sequence"),
        ("a && b", "&&"),
        ("a &", "&"),
        ("a > /tmp/x", "a redirect"),
        ("a < x", "a redirect"),
        ("a $(b)", "a $ expansion"),
        ("a $HOME/x", "a $ expansion"),
        ('a "$HOME"', "a $ expansion in double quotes"),
        ("a `b`", "a backquote"),
        ("ls *.bin", "a glob"),
        ("ls x?", "a glob"),
        ("ls [ab]", "a glob"),
        ("(a)", "a parenthesis"),
        ("A=1 program", "a leading A="),
        ("a\nb", "a line break"),
        ("echo 'x' | sh -c 'y'", "a pipe"),
        ("sh -c x; y", "a sequence"),
    ],
)
def test_what_only_a_shell_understands_is_named_and_the_form_offered_is_accepted(command, what):
    assert what in take_apart(command).shell
    offered = take_apart(with_shell(command))
    assert offered.shell == "" and offered.words == ["sh", "-c", command]


@pytest.mark.parametrize(("command", "why"), [("", "empty"), ("   ", "empty"), ("''", "empty"), ("a 'b", "quote"),
                                              ("a \\", "backslash"), ("a\0b", "NUL")])  # fmt: skip
def test_a_command_that_cannot_be_taken_apart_says_why(command, why):
    with pytest.raises(ValueError, match=why):
        take_apart(command)


@given(st.lists(st.text(min_size=1).filter(lambda word: "\0" not in word), min_size=1, max_size=4))
def test_quoted_words_come_back_as_they_were(words):
    found = take_apart(shlex.join(["program", *words]))
    assert found.words == ["program", *words] and found.shell == ""


@given(st.text())
def test_no_text_breaks_it(text):
    try:
        found = take_apart(text)
    except ValueError:
        return
    assert found.words
