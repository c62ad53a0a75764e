"""The driver on a real server: a right history passes, and operations that are not one transaction are found."""

import copy

import pytest

from histories.__main__ import COUNT_MIN, Recorder, found, judge, perform, play, prepare, settle_times, summary, thin
from histories.clients import GUARD, RawClient, SdkClient, batch_steps
from support.server import Server
from support.wire import Wire


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path / "data") as server:
        prepare(server)
        yield server


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path / "history.jsonl")
    recorder.path = tmp_path / "history.jsonl"
    return recorder


class TornClient:
    """Sends the steps of an operation one after the other, as a server that forgets that they belong together."""

    def __init__(self, client, between):
        self.client, self.between = client, between

    def send(self, key, operation):
        seen = []
        for step in operation["steps"]:
            if seen:
                self.between()
            told = self.client.send(key, {"by": "single", "main": 0, "steps": [step]})
            seen += told["done"]
        return {"done": seen}


def create(id, mark):
    return {"kind": "create", "id": id, "body": body(id, mark)}


def replace(id, mark):
    return {"kind": "replace", "id": id, "body": body(id, mark)}


def body(id, mark):
    return {"id": id, "pk": "k", "w": mark, "n": mark}


def read(id):
    return {"kind": "read", "id": id}


def operation(by, *steps):
    return {"by": by, "main": 0, "steps": list(steps)}


# By name: what is there before, the operation in question, and what another client does in its middle.
TORN = {
    "a procedure whose half is seen": (
        [], operation("procedure", create("a", 10), create("b", 11)), operation("procedure", read("a"), read("b"))),
    "a write whose post-trigger comes later": (
        [], operation("triggered", create("a", 10), create("b", 11)), operation("batch", read("a"), read("b"))),
    "a procedure that overwrites what it has not seen": (
        [create("a", 1)], operation("procedure", read("a"), replace("a", 10)), operation("single", replace("a", 20))),
    "a procedure that reads two states": (
        [create("a", 1), create("b", 2)], operation("procedure", read("a"), read("b")),
        operation("batch", replace("a", 20), replace("b", 21))),
    "a pre-trigger that reads what is gone": (
        [create(GUARD, 1)], operation("triggered", read(GUARD), create("a", 10)), operation("single", replace(GUARD, 20))),
}


def run(server, recorder, case, torn):
    """Plays a case: its operation in one, with the other one behind it, or torn with the other one in its middle."""
    before, one, other = copy.deepcopy(case)
    client = RawClient(server.port, "http")
    send = lambda client, operation: perform(client, recorder, "k", 0, operation, {})
    for step in before:
        send(client, operation("single", step))
    if torn:
        send(TornClient(client, lambda: send(RawClient(server.port, "http"), other)), one)
    else:
        send(client, whole(one))
        send(client, other)
    with Wire(server.port) as wire:
        recorder.write({"wave": 0, "key": "k", "found": found(wire, "k")})
    recorder.close()
    return judge(recorder.path)


def whole(one):
    """The operation as the scripts of the driver take it."""
    if one["by"] != "triggered":
        return one
    steps = one["steps"]
    if steps[0]["kind"] == "read":
        steps[1]["body"]["guard"] = GUARD
        return {**one, "main": 1}
    steps[0]["body"]["after"] = batch_steps(steps[1:])
    return one


@pytest.mark.parametrize("case", TORN)
def test_an_operation_in_one_passes(server, recorder, case):
    is_explained, said = run(server, recorder, TORN[case], torn=False)
    assert is_explained, said
    assert not any("unknown" in name for name in summary(recorder.path))


@pytest.mark.parametrize("case", TORN)
def test_a_torn_operation_is_found(server, recorder, case):
    is_explained, said = run(server, recorder, TORN[case], torn=True)
    assert not is_explained and "no order explains" in said, said


def test_racing_clients_pass(server, recorder):
    clients = [RawClient(server.port, "http"), SdkClient(server.port, "http")]
    failures, _ = play(server, clients, recorder, 2, 3)
    recorder.close()
    is_explained, said = judge(recorder.path)
    assert is_explained and not failures, (said, failures)


def test_a_thin_history_is_no_proof():
    full = {f"{way} {outcome}": COUNT_MIN for way in ("single", "batch", "procedure", "triggered")
            for outcome in ("done", "refused")}
    assert thin(full, 1, 1) == []
    assert len(thin(full, 1, 0)) == 1
    assert len(thin({**full, "procedure done": COUNT_MIN - 1}, 1, 1)) == 1


def test_times_that_scripts_guess_are_settled(recorder):
    item = lambda etag, ts: {"id": "a", "_etag": etag, "_ts": ts}
    recorder.write({"by": "procedure", "done": [{"kind": "created", "item": item("1", 5)}, {"kind": "deleted"}]})
    recorder.write({"by": "single", "done": [{"kind": "read", "item": item("1", 6)}]})
    recorder.write({"found": [item("2", 8)]})
    recorder.close()
    settle_times(recorder.path)
    assert '"_ts": 5' not in recorder.path.read_text()
