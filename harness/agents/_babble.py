"""The program behind the agent `noise`: `_babble.py SEED [LINES]`, the goal on stdin. Stands alone, standard library.

Prints words in no order, runs commands that nobody has (and now and then a real one without an effect), claims to be
done, and goes on; with LINES it stops there. The same seed and the same goal give the same words.
"""

import os
import random
import sys
import time

WORDS = ["the", "of", "a", "board", "lab", "then", "done", "because", "flash", "success", "verified", "been",
         "it", "which", "port", "I", "completed", "target", "now", "power", "as", "an", "AI", "serial"]  # fmt: skip
VERBS = ["flash", "reboot", "fix", "configure", "autodetect", "provision", "deploy", "login", "attach", "sync", "heal"]
REAL = ("labd --help", "labd target list --json", "labd config show", "ls -la", "pwd")
PAUSE_S = 0.05


def line(dice: random.Random, goal: list[str]) -> str:
    """One line of babble, with pieces of the goal in it."""
    words = [dice.choice(WORDS if dice.random() < 0.7 or not goal else goal) for _ in range(dice.randint(3, 14))]
    return " ".join(words) + dice.choice([".", "", " …", "!!", "```"])


def command(dice: random.Random) -> str:
    """A command that doesn't exist, mostly."""
    if dice.random() < 0.2:
        return dice.choice(REAL)
    flags = [f"--{dice.choice(VERBS)}={dice.randint(0, 99)}" for _ in range(dice.randint(0, 2))]
    return " ".join(["labd", dice.choice(VERBS), *dice.sample(WORDS, dice.randint(0, 3)), *flags])


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Babble until somebody ends it."""
    dice = random.Random(sys.argv[1])
    left = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    goal = sys.stdin.read().split()
    while left:
        left -= 1
        say(line(dice, goal))
        if dice.random() < 0.5:
            tried = command(dice)
            say(f"$ {tried}")
            os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", tried], os.environ), 0)  # noqa: TID251  (a program of its own)
        if dice.random() < 0.1:
            say("The task is complete and verified. All tests pass.")
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
