"""What a client wanted and what it was told, on disk before it goes on; kept outside of the server's folder.

One JSON object per line. A change names a key `[container, partition key, id]` and the body it leads to, `null` for
none:

    {"op": "w0-3-17", "intent": [[["plain", "p1", "w0-3-9"], {"id": …}]], "shared": false, "if_match": null}
    {"op": "w0-3-17", "outcome": "done", "status": 201, "range": "0", "lsn": 812, "etags": {"w0-3-9": "…"}, "ts": 17…}
    {"op": "w0-3-18", "outcome": "refused", "status": 409}
    {"op": "w0-3-19", "outcome": "unknown", "why": "…"}

An intent without an outcome is unknown too: the client died in between.
"""

import json
import os
from dataclasses import dataclass, field

DONE, REFUSED, UNKNOWN = "done", "refused", "unknown"


@dataclass
class Operation:
    """One request: what it wanted and how it went."""

    op: str
    changes: list  # of (key, body or None), in order
    shared: bool = False  # whether others write the same keys
    if_match: str = None
    outcome: str = UNKNOWN
    status: int = 0
    range: str = ""
    lsn: int = 0
    etags: dict = field(default_factory=dict)  # by id
    ts: int = 0
    why: str = ""


class Journal:
    """Appends lines, each on the disk before the call returns."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)

    def intent(self, op, changes, shared=False, if_match=None):
        self._write({"op": op, "intent": changes, "shared": shared, "if_match": if_match})

    def done(self, op, status, range_id, lsn, etags, ts):
        self._write({"op": op, "outcome": DONE, "status": status, "range": range_id, "lsn": lsn, "etags": etags, "ts": ts})

    def refused(self, op, status):
        self._write({"op": op, "outcome": REFUSED, "status": status})

    def unknown(self, op, why):
        self._write({"op": op, "outcome": UNKNOWN, "why": why})

    def _write(self, line):
        self.file.write(json.dumps(line).encode() + b"\n")
        os.fdatasync(self.file.fileno())


def read(path, offset=0):
    """The operations that begin behind `offset`, in order, and the offset of the end."""
    operations = {}
    with open(path, "rb") as file:
        file.seek(offset)
        text = file.read()
    for line in text.splitlines():
        record = json.loads(line)
        if "intent" in record:
            changes = [(tuple(key), body) for key, body in record["intent"]]
            operations[record["op"]] = Operation(record["op"], changes, record["shared"], record["if_match"])
            continue
        operation = operations[record["op"]]
        for name in ("outcome", "status", "range", "lsn", "etags", "ts", "why"):
            if name in record:
                setattr(operation, name, record[name])
    return list(operations.values()), offset + len(text)
