"""A helper run in this process, as its own program would be."""

from types import ModuleType


def run(helper: ModuleType, *words: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    out: list[str] = []
    err: list[str] = []
    code = helper.main(list(words), env=env or {}, out=out.append, err=err.append)
    return code, "".join(out), "".join(err)
