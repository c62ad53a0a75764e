"""The verdict: compares what is there after a crash with what clients wanted and were told.

Pure: knows journals and items, no server. Rules, each with a planted violation in `test_judge.py`:

* an acknowledged write is there, or a later one of its key is (lost);
* what is there traces to an intent, byte for byte (ghost);
* a refused write is not there (refused);
* a write of unknown outcome is wholly there or wholly absent; so is a batch (half);
* ETags do not repeat, LSNs grow and times do not go back, also across crashes (order);
* no two acknowledged writes rest on the same version of an item (update lost);
* no two items of a partition share a unique key (unique).
"""

from collections import defaultdict, deque

from kill.journal import DONE, REFUSED, UNKNOWN

SYSTEM = ("_rid", "_self", "_etag", "_ts", "_attachments")
# Rounds whose ETags are remembered: LSNs, which never go back, speak for the older ones.
ETAG_ROUNDS = 30


def plain(item):
    return None if item is None else {name: value for name, value in item.items() if name not in SYSTEM}


class Judge:
    """Keeps the state that was last found right, and judges what the next round made of it."""

    def __init__(self):
        self.state = {}  # key -> item as the server gave it
        self.lsn_max = defaultdict(int)  # (container, range) -> highest acknowledged
        self.ts_max = defaultdict(int)
        self.etags = deque(maxlen=ETAG_ROUNDS)

    def judge(self, journals, observed):
        """Violations of one round. `journals` are lists of operations, one list a client, each in its order."""
        self.violations = []
        self._order(journals)
        self._updates(journals)
        own = [operation for journal in journals for operation in journal if not operation.shared]
        shared = [operation for journal in journals for operation in journal if operation.shared]
        candidates = self._own_candidates(own)
        candidates.update(self._shared_candidates(shared))
        self._compare(candidates, journals, observed)
        self._batches(own, observed)
        self._unique(observed)
        self.state = observed
        return self.violations

    def _say(self, kind, text):
        self.violations.append(f"{kind}: {text}")

    # What may be there.

    def _before(self, key):
        item = self.state.get(key)
        return (plain(item), item["_etag"]) if item else (None, None)

    def _own_candidates(self, operations):
        """Per key, the bodies (with ETag where known) that are right. Only one client writes a key."""
        candidates = {}
        for operation in operations:
            for key, body in operation.changes:
                known = candidates.setdefault(key, [self._before(key)])
                after = (body, operation.etags.get(key[2]) if body is not None else None)
                if operation.outcome == DONE:
                    # A batch may touch a key twice; its ETag is that of the last touch.
                    candidates[key] = [after]
                elif operation.outcome == UNKNOWN:
                    known.append(after)
        return candidates

    def _shared_candidates(self, operations):
        """The same for keys that many write: an acknowledged write with the highest LSN, or any unknown one.

        Transactions that were committed together are answered with one LSN, that of the last of them. So several
        writes of a key may have the highest; what another of them replaced under its ETag is not the last.
        """
        by_key = defaultdict(list)
        for operation in operations:
            (key, body), = operation.changes
            by_key[key].append((operation, body))
        candidates = {}
        for key, attempts in by_key.items():
            done = [(operation, body) for operation, body in attempts if operation.outcome == DONE]
            if done:
                lsn = max(operation.lsn for operation, _ in done)
                last = [(body, operation.etags.get(key[2])) for operation, body in done if operation.lsn == lsn]
                replaced = {operation.if_match for operation, _ in done if operation.if_match}
                candidates[key] = [(body, etag) for body, etag in last if etag not in replaced]
            else:
                candidates[key] = [self._before(key)]
            candidates[key] += [(body, None) for operation, body in attempts if operation.outcome == UNKNOWN]
        return candidates

    # What is there.

    def _compare(self, candidates, journals, observed):
        wanted = defaultdict(list)
        for journal in journals:
            for operation in journal:
                for key, body in operation.changes:
                    wanted[key].append((operation, body))
        for key in set(candidates) | set(observed) | set(self.state):
            item = observed.get(key)
            body, etag = plain(item), item["_etag"] if item else None
            right = candidates.get(key, [self._before(key)])
            if any(body == good and good_etag in (None, etag) for good, good_etag in right):
                continue
            if body is None:
                self._say("lost", f"{key} is gone; expected one of {_short(right)}")
            elif any(body == good for good, _ in right):
                self._say("order", f"{key} has the etag {etag}, expected {_short(right)}")
            elif any(body == attempt and operation.outcome == REFUSED for operation, attempt in wanted[key]):
                self._say("refused", f"{key} shows a refused write: {_short(body)}")
            elif any(body == attempt for _, attempt in wanted[key]) or body == self._before(key)[0]:
                self._say("lost", f"{key} shows an older version: {_short(body)}; expected one of {_short(right)}")
            else:
                self._say("ghost", f"{key} traces to no intent: {_short(body)}; expected one of {_short(right)}")

    def _batches(self, operations, observed):
        """A batch of unknown outcome: all of its keys as before, or all as wanted."""
        for operation in operations:
            if operation.outcome != UNKNOWN or len(operation.changes) < 2:
                continue
            applied, missing = [], []
            for key, after in dict(operation.changes).items():
                before = self._last_before(operations, operation, key)
                now = plain(observed.get(key))
                if before == after:
                    continue
                if now == after:
                    applied.append(key)
                elif now == before:
                    missing.append(key)
            if applied and missing:
                self._say("half", f"batch {operation.op}: applied {applied}, missing {missing}")

    def _last_before(self, operations, batch, key):
        """The body of a key before a batch: the client's last acknowledged one."""
        body = self._before(key)[0]
        for operation in operations:
            if operation is batch:
                return body
            for changed, after in operation.changes:
                if changed == key and operation.outcome == DONE:
                    body = after
        return body

    def _order(self, journals):
        """LSNs grow, times do not go back, ETags do not repeat."""
        seen = {}
        lsn_floor, ts_floor = dict(self.lsn_max), dict(self.ts_max)
        for journal in journals:
            lsns, stamps = defaultdict(int, lsn_floor), defaultdict(int, ts_floor)
            for operation in journal:
                if operation.outcome != DONE:
                    continue
                place = (operation.changes[0][0][0], operation.range)
                # The Table API tells no LSN.
                if operation.lsn and operation.lsn <= lsns[place]:
                    self._say("order", f"{operation.op}: LSN {operation.lsn} after {lsns[place]} in {place}")
                lsns[place] = operation.lsn
                self.lsn_max[place] = max(self.lsn_max[place], operation.lsn)
                if operation.ts:
                    if operation.ts < stamps[place]:
                        self._say("order", f"{operation.op}: time {operation.ts} after {stamps[place]} in {place}")
                    stamps[place] = operation.ts
                    self.ts_max[place] = max(self.ts_max[place], operation.ts)
                for id, etag in operation.etags.items():
                    # ETags of tables are times, which two entities may share.
                    name = (*place, etag) if operation.lsn else (*place, id, etag)
                    other = seen.get(name)
                    if other not in (None, (operation.op, id)) or any(name in old for old in self.etags):
                        self._say("order", f"{operation.op}: the etag {etag} was given before")
                    seen[name] = (operation.op, id)
        self.etags.append(set(seen))

    def _updates(self, journals):
        """Two acknowledged writes under the same condition: one of them overwrote what it had not seen."""
        used = {}
        for journal in journals:
            for operation in journal:
                if operation.if_match is None or operation.outcome != DONE:
                    continue
                name = (operation.changes[0][0], operation.if_match)
                if name in used:
                    self._say("update lost", f"{used[name]} and {operation.op} both replaced {name}")
                used[name] = operation.op

    def _unique(self, observed):
        holders = {}
        for (container, pk, id), item in observed.items():
            if container != "unique":
                continue
            name = (pk, item.get("u"))
            if name in holders:
                self._say("unique", f"{holders[name]} and {id} share {name}")
            holders[name] = id


def _short(value):
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "…"
