"""What an experiment found, in words, for the ledger and for its own page. Pure."""

from typing import Any

from harness.ledger import Change


def about_found(found: dict[str, Any] | None, change: Change) -> list[str]:
    """The paragraphs of an entry's `After` and `Verdict`."""
    if found is None:
        tried = f"Its experiment is `labd-eval experiment run {change.experiment}`." if change.experiment else (
            "No experiment has been written for it.")  # fmt: skip
        return [f"Not measured. {tried}", "### Verdict", "None: without Tier 2 there is nothing to judge."]
    return []
