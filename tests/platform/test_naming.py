"""Which name of an adapter is worth writing down."""

from typing import Any

from labd.platform.naming import advice


def port(node: str, **more: Any) -> dict[str, Any]:
    return {"node": node, "by_id": "/nowhere/by-id/x", "by_path": "/nowhere/by-path/p", "twins": [], **more}


def test_a_bare_number_is_told_its_lasting_name() -> None:
    said = advice("/nowhere/ttyUSB0", [port("/nowhere/ttyUSB0")])
    assert said and "changes when adapters are plugged in again" in said and "/nowhere/by-id/x" in said


def test_an_id_that_two_share_is_told_the_sockets_name() -> None:
    twin = port("/nowhere/ttyUSB0", twins=["/nowhere/ttyUSB1"])
    said = advice("/nowhere/ttyUSB0", [twin])
    assert said and "/nowhere/ttyUSB1 has the same USB ids" in said and "/nowhere/by-path/p" in said
    bare = advice("/nowhere/ttyUSB0", [{**twin, "by_path": None}])
    assert bare and "no by-path name is there" in bare


def test_a_good_name_and_an_unknown_one_need_no_advice(tmp_path: Any) -> None:
    node = tmp_path / "ttyUSB0"
    node.write_text("")
    link = tmp_path / "by-path"
    link.symlink_to(node)
    twin = port(str(node), by_path=str(link), twins=["/nowhere/ttyUSB1"])
    assert advice(str(link), [twin]) is None
    assert advice(str(node), [port(str(node), by_id=None)]) is None
    assert advice("/nowhere/ttyUSB9", [port(str(node))]) is None
