"""The judge is judged: every kind of violation is planted once and must be found, and a right history must pass."""

import pytest

from kill.journal import DONE, REFUSED, UNKNOWN, Journal, Operation, read
from kill.judge import Judge
from kill.tables import TABLE, time_of


def key(id, container="plain"):
    return (container, "p", id)


def body(id, op, **others):
    return {"id": id, "pk": "p", "op": op, **others}


def item(body, etag, ts=100):
    return {**body, "_etag": etag, "_ts": ts, "_rid": "r", "_self": "s", "_attachments": "attachments/"}


def write(op, id, lsn, container="plain", outcome=DONE, after=True, **others):
    """A write of one item; its ETag is made from its LSN as long as the test does not say otherwise."""
    change = (key(id, container), body(id, op) if after else None)
    done = {"status": 200, "range": "0", "lsn": lsn, "etags": {id: f"e{lsn}"} if after else {}, "ts": 100}
    return Operation(op, [change], outcome=outcome, **{**(done if outcome == DONE else {}), **others})


def batch(op, ids, lsn=0, outcome=UNKNOWN):
    changes = [(key(id), body(id, op)) for id in ids]
    etags = {id: f"e{lsn}-{id}" for id in ids} if outcome == DONE else {}
    return Operation(op, changes, outcome=outcome, range="0", lsn=lsn, etags=etags, ts=100 if lsn else 0)


def settled():
    """A judge after a first round that left the items `a` and `b`."""
    judge = Judge()
    observed = {key("a"): item(body("a", "1"), "e1"), key("b"): item(body("b", "2"), "e2")}
    assert judge.judge([[write("1", "a", 1), write("2", "b", 2)]], observed) == []
    return judge, observed


def check(journals, change, expected, judge_of=settled):
    """Judges a round whose observed state is the settled one with `change` applied."""
    judge, observed = judge_of()
    observed = dict(observed)
    for name, value in change.items():
        observed[name] = value
        if value is None:
            del observed[name]
    found = judge.judge(journals, observed)
    kinds = {violation.split(":")[0] for violation in found}
    assert kinds == expected, found


RIGHT = {
    "nothing happened": ([[]], {}),
    "an acknowledged create": ([[write("3", "c", 3)]], {key("c"): item(body("c", "3"), "e3")}),
    "an acknowledged delete": ([[write("3", "a", 3, after=False)]], {key("a"): None}),
    "an overwritten create": ([[write("3", "c", 3), write("4", "c", 4)]], {key("c"): item(body("c", "4"), "e4")}),
    "a refused create that is absent": ([[write("3", "c", 0, outcome=REFUSED)]], {}),
    "an unknown create that is there": ([[write("3", "c", 0, outcome=UNKNOWN)]], {key("c"): item(body("c", "3"), "e9")}),
    "an unknown create that is absent": ([[write("3", "c", 0, outcome=UNKNOWN)]], {}),
    "an unknown delete that happened": ([[write("3", "a", 0, outcome=UNKNOWN, after=False)]], {key("a"): None}),
    "an unknown batch, whole": ([[batch("3", "cd")]], {
        key("c"): item(body("c", "3"), "e8"), key("d"): item(body("d", "3"), "e9")}),
    "an unknown batch, absent": ([[batch("3", "cd")]], {}),
    "an unknown batch over an earlier write": ([[write("3", "c", 3), batch("4", "cd")]], {
        key("c"): item(body("c", "3"), "e3")}),
    "shared writes in two journals": (
        [[write("3", "s", 3, shared=True, if_match="x")], [write("4", "s", 4, shared=True, if_match="e3")]],
        {key("s"): item(body("s", "4"), "e4")}),
    "shared writes that were committed together": (
        [[write("3", "s", 4, shared=True, etags={"s": "e3"})], [write("4", "s", 4, shared=True)]],
        {key("s"): item(body("s", "4"), "e4")}),
    "an unknown shared write on top": (
        [[write("3", "s", 3, shared=True)], [write("4", "s", 0, outcome=UNKNOWN, shared=True, if_match="e3")]],
        {key("s"): item(body("s", "4"), "e7")}),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_histories_pass(case):
    journals, change = RIGHT[case]
    check(journals, change, set())


WRONG = {
    "an old item vanished": ([[]], {key("a"): None}, {"lost"}),
    "an acknowledged create is absent": ([[write("3", "c", 3)]], {}, {"lost"}),
    "an acknowledged replace shows the old body": ([[write("3", "a", 3)]], {}, {"lost"}),
    "an acknowledged delete is back": ([[write("3", "a", 3, after=False)]], {}, {"lost"}),
    "an item nobody wrote": ([[]], {key("x"): item(body("x", "9"), "e9")}, {"ghost"}),
    "a torn body": ([[write("3", "c", 3)]], {key("c"): item({"id": "c", "pk": "p"}, "e3")}, {"ghost"}),
    "an old item with a new body": ([[]], {key("a"): item(body("a", "9"), "e1")}, {"ghost"}),
    "a refused write is there": ([[write("3", "c", 0, outcome=REFUSED)]], {key("c"): item(body("c", "3"), "e9")}, {"refused"}),
    "a refused replace shows": ([[write("3", "a", 0, outcome=REFUSED)]], {key("a"): item(body("a", "3"), "e9")}, {"refused"}),
    "half a batch": ([[batch("3", "cde")]], {key("c"): item(body("c", "3"), "e8")}, {"half"}),
    "half a batch over old items": ([[batch("3", "ab")]], {key("a"): item(body("a", "3"), "e8")}, {"half"}),
    "half an acknowledged batch": ([[batch("3", "cd", 3, DONE)]], {key("c"): item(body("c", "3"), "e3-c")}, {"lost"}),
    "another etag than was told": ([[write("3", "c", 3)]], {key("c"): item(body("c", "3"), "e0")}, {"order"}),
    "an LSN that goes back": ([[write("3", "c", 2, etags={"c": "e3"})]], {key("c"): item(body("c", "3"), "e3")}, {"order"}),
    "a time that goes back": ([[write("3", "c", 3, ts=99)]], {key("c"): item(body("c", "3"), "e3")}, {"order"}),
    "an etag that was given before": ([[write("3", "c", 3, etags={"c": "e1"})]], {key("c"): item(body("c", "3"), "e1")}, {"order"}),
    "one etag for two items": (
        [[write("3", "c", 3, etags={"c": "e3"})], [write("4", "d", 4, etags={"d": "e3"})]],
        {key("c"): item(body("c", "3"), "e3"), key("d"): item(body("d", "4"), "e3")}, {"order"}),
    "two writes on one version": (
        [[write("3", "s", 3, shared=True, if_match="x")], [write("4", "s", 4, shared=True, if_match="x")]],
        {key("s"): item(body("s", "4"), "e4")}, {"update lost"}),
    "a shared write that is lost": (
        [[write("3", "s", 3, shared=True, if_match="x")], [write("4", "s", 4, shared=True, if_match="e3")]],
        {key("s"): item(body("s", "3"), "e3")}, {"lost"}),
    "a shared write that is lost, committed with the one it replaced": (
        [[write("3", "s", 4, shared=True, etags={"s": "e3"})], [write("4", "s", 4, shared=True, if_match="e3")]],
        {key("s"): item(body("s", "3"), "e3")}, {"lost"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_planted_violations_are_found(case):
    journals, change, expected = WRONG[case]
    check(journals, change, expected)


# Tables tell no LSN; an ETag is the time of its version, and the place of a write is its partition.
def entities(op, etags, outcome=DONE, ids=None, ts=101):
    changes = [(key(id, TABLE), body(id, op)) for id in ids or etags]
    return Operation(op, changes, outcome=outcome, range="p", etags=etags, ts=ts if outcome == DONE else 0)


def entity(id, op, etag):
    return {key(id, TABLE): item(body(id, op), etag)}


def settled_table():
    judge = Judge()
    observed = {**entity("a", "1", "t1"), **entity("b", "1", "t1")}
    assert judge.judge([[entities("1", {"a": "t1", "b": "t1"}, ts=100)]], observed) == []
    return judge, observed


TABLES = {
    "a group with one time": ([[entities("3", {"c": "t3", "d": "t3"})]], {**entity("c", "3", "t3"), **entity("d", "3", "t3")}, set()),
    "an unknown group, whole": ([[entities("3", {}, UNKNOWN, "cd")]], {**entity("c", "3", "t3"), **entity("d", "3", "t3")}, set()),
    "an unknown group, absent": ([[entities("3", {}, UNKNOWN, "cd")]], {}, set()),
    "an acknowledged entity is absent": ([[entities("3", {"c": "t3"})]], {}, {"lost"}),
    "an old entity vanished": ([[]], {key("a", TABLE): None}, {"lost"}),
    "half a group": ([[entities("3", {}, UNKNOWN, "cd")]], entity("c", "3", "t3"), {"half"}),
    "half a group over old entities": ([[entities("3", {}, UNKNOWN, "ab")]], entity("a", "3", "t3"), {"half"}),
    "half an acknowledged group": ([[entities("3", {"c": "t3", "d": "t3"})]], entity("c", "3", "t3"), {"lost"}),
    "a refused group is there": ([[entities("3", {}, REFUSED, "cd")]], {**entity("c", "3", "t3"), **entity("d", "3", "t3")}, {"refused"}),
    "another etag than was told": ([[entities("3", {"c": "t3"})]], entity("c", "3", "t4"), {"order"}),
    "a time that goes back": ([[entities("3", {"c": "t3"}, ts=99)]], entity("c", "3", "t3"), {"order"}),
    "an etag that was given before": ([[entities("3", {"a": "t1"})]], entity("a", "3", "t1"), {"order"}),
}


@pytest.mark.parametrize("case", TABLES)
def test_violations_in_tables_are_found(case):
    journals, change, expected = TABLES[case]
    check(journals, change, expected, settled_table)


def test_two_holders_of_a_unique_key_are_found():
    bodies = {id: {"id": id, "pk": "p", "op": id, "u": 7} for id in "cd"}
    journal = [
        Operation(id, [(key(id, "unique"), bodies[id])], outcome=DONE, range="0", lsn=lsn, etags={id: f"e{lsn}"}, ts=100)
        for lsn, id in enumerate("cd", 3)]
    observed = {key(id, "unique"): item(bodies[id], f"e{lsn}") for lsn, id in enumerate("cd", 3)}
    found = Judge().judge([journal], observed)
    assert [violation.split(":")[0] for violation in found] == ["unique"]


def test_a_round_is_judged_against_the_one_before():
    judge, observed = settled()
    later = {**observed, key("c"): item(body("c", "3"), "e3")}
    assert judge.judge([[write("3", "c", 3)]], later) == []
    assert [violation.split(":")[0] for violation in judge.judge([[]], observed)] == ["lost"]


def test_journals_are_read_back_as_written(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.intent("1", [[["plain", "p", "a"], {"id": "a"}]])
    journal.done("1", 201, "0", 5, {"a": "e"}, 100)
    journal.intent("2", [[["plain", "p", "a"], None]], shared=True, if_match="e")
    journal.refused("2", 412)
    first, offset = read(tmp_path / "journal")
    assert [(one.op, one.outcome, one.lsn) for one in first] == [("1", DONE, 5), ("2", REFUSED, 0)]
    assert first[1].shared and first[1].if_match == "e" and first[1].changes == [(("plain", "p", "a"), None)]
    journal.intent("3", [])
    second, _ = read(tmp_path / "journal", offset)
    assert [(one.op, one.outcome) for one in second] == [("3", UNKNOWN)]


def test_times_of_etags_grow():
    first = time_of("W/\"datetime'2026-11-18T20%3A50%3A03.7890001Z'\"")
    assert first < time_of("W/\"datetime'2026-11-18T20%3A50%3A03.7890002Z'\"") < time_of("W/\"datetime'2026-11-18T20%3A50%3A04.0000000Z'\"")
