"""Is a command named to say that it is not there, or not to be used? Reads the words around it in its own sentence.

A cue denies what follows it in the same clause ("there is no X", "don't use X", "instead of X"), and what stands in a
list with it ("no X, Y or Z"). A command is not denied by a cue that is about something else: behind "until", "unless",
"before" or a second cue ("not … without X"), or where the clause has gone on to another verb ("… is not up, run X").
Words behind it deny it too ("X does not exist", "X would be wrong"). Pure; linear in the text.
"""

import re

#: Where one clause ends and the next begins.
_BREAK = re.compile(
    r"[;:,]\s|\s[—–-]\s|[(]|—|→|\b(?:but|however|whereas|while|though|because|since|so|then|and\s+then|otherwise|"
    r"instead(?!\s+of)|rather(?!\s+than))\b",
    re.IGNORECASE,
)

_CUE = re.compile(
    r"\b(?:no|not|never|neither|nor|none|cannot|avoid(?:s|ing)?|without|unlike|lacks?|isn['’]t|aren['’]t|don['’]t|"
    r"doesn['’]t|won['’]t|can['’]t|shouldn['’]t|mustn['’]t|wouldn['’]t|wasn['’]t|hasn['’]t|haven['’]t|didn['’]t|"
    r"instead\s+of|rather\s+than|as\s+opposed\s+to|non-?existent|invent(?:ed|ing)?|fabricat(?:ed?|ing)|made[- ]up|"
    r"imaginary|hypothetical|refuse(?:s|d)?\s+to|wrong(?:ly)?)\b",
    re.IGNORECASE,
)

#: Turns a cue before it into its opposite.
_TURN = re.compile(
    r"\b(?:until|unless|before|except|only|just|forget|fail|hesitate|other\s+than|but|if|needed?\s+for|"
    r"wait(?:ing)?\s+for)\b",
    re.IGNORECASE,
)

#: A verb that says what to do; only words like these may stand between a cue and it ("do not ever run X").
_DO = re.compile(r"\b(?:run|use|start|call|execute|try|issue|type|invoke|enter|with|via|through|by)\b", re.IGNORECASE)
_BETWEEN = re.compile(
    r"(?:\W|\b(?:ever|to|just|simply|directly|please|do|be|try|at|all|the|a|an|any|run|use|by|with)\b)*"
)

_AFTER = re.compile(
    r"[\s*_)]*(?:\([^)]*\)\s*)?(?:command|verb|flag|option|subcommand|here|itself)?\s*"
    r"(?:(?:do|does|did)(?:\s+not|n['’]t)\s+(?:exist|apply|work|help|belong)"
    r"|(?:is|are|was|would\s+be)(?:\s+not|n['’]t)\s+(?:a|an|the|what|right|real|available|needed|valid|there|part|for|it|"
    r"supported|one|used|correct|appropriate|allowed|going)\b"
    r"|(?:is|are|would\s+be)\s+(?:wrong|invalid|unavailable|unsupported|fabricated|made[- ]up|invented|fiction|"
    r"a\s+trap|something\s+else|different|the\s+wrong)\b"
    r"|(?:will|would|can)(?:\s+not|n['’]t)\s+(?:work|help|exist|do|be)|cannot\s+be|can['’]t\s+be|won['’]t\s+(?:work|help)"
    r"|(?:has|have)\s+no\s+place|fails\b)",
    re.IGNORECASE,
)

#: A clause of nothing but this goes on with the list before it.
_LIST = re.compile(r"[\s*_`\"'“”]*(?:(?:and|or|nor|also|even|any|a|an)\b[\s*_`\"'“”]*)*", re.IGNORECASE)

#: How much of a sentence is looked at on each side.
REACH = 400


def denied(before: str, after: str) -> bool:
    """Whether the words before (the sentence up to the command, other commands blanked) or behind deny it."""
    return _denied_before(before[-REACH:]) or _AFTER.match(after[:REACH]) is not None


def _denied_before(before: str) -> bool:
    breaks = [
        (0, 0, ""),
        *((match.start(), match.end(), match[0].strip().lower()) for match in _BREAK.finditer(before)),
    ]
    end = len(before)
    while breaks:
        broken, start, kind = breaks.pop()
        clause = before[start:end]
        if not _LIST.fullmatch(clause) or kind not in (",", "(", ":"):
            return _clause(clause)
        end = broken
        if kind == ":":  # "do not run: X" speaks of X, "not much to do: X" does not
            return _clause(before[breaks[-1][1] : end]) and _ENDS_OPEN.search(before[:end]) is not None
        # "no X, Y or Z": Y goes on with the list that X began
    return False


#: A cue that what stands behind the colon completes.
_ENDS_OPEN = re.compile(
    r"\b(?:no|not|never|avoid|don['’]t|n['’]t)\s+(?:\w+\s+){0,1}(?:run|use|type|these|this|exist|such\s+\w+|command\w*)?"
    r"(?:\s+(?:as|like))?\s*$",
    re.IGNORECASE,
)


def _clause(text: str) -> bool:
    cues = list(_CUE.finditer(text))
    if not cues:
        return False
    last = cues[-1]
    behind = text[last.end() :]
    if _TURN.search(behind):
        return False
    if last[0].lower() == "without":
        return len(cues) == 1
    acts = [act.start() for act in _DO.finditer(behind)]
    return not acts or _BETWEEN.fullmatch(behind[: acts[-1]]) is not None or last[0].lower() in _GOVERNS


#: Cues that govern a whole noun phrase, verbs in it included ("instead of going on to run X").
_GOVERNS = frozenset({"instead of", "rather than", "avoid", "avoiding", "never"})
