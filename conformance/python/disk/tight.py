"""A disk so small, with so small a reserve, that the store's own tables could fill it: they never do."""

from disk import story
from disk.story import CONTAINER, ITEM_BYTES, MIB

VOLUME_BYTES = 80 * MIB
RESERVE_BYTES = 16 * MIB
ROUNDS = 4
ACTIONS = 60


class Test(story.Test):
    """Writes until it is refused, goes on with everything there is, and stops, again and again."""

    def __init__(self, volume):
        super().__init__(volume, RESERVE_BYTES)

    def run(self):
        with self.server:
            self.make_container()
            for number in range(ROUNDS):
                self.fill_tight()
                self.go_on()
                self.compare(f"round {number}: everything acknowledged is there")
                self.check(f"round {number}: no write of the store itself met a full disk",
                           "takes no commit" not in self.server.errors(), self.server.errors())
                self.check(f"round {number}: the server stops in order", self.server.stop() == 0, self.server.errors())
                self.server.start()
                self.wire.close()
                self.compare(f"round {number}: everything acknowledged is there after a restart")

    def fill_tight(self):
        """Writes until the first refusal."""
        for _ in range(VOLUME_BYTES // ITEM_BYTES * 2):
            _, answer = self.create()
            if answer.status != 201:
                break
        self.check("a write is refused with 507 in the end", answer.status == 507, f"{answer.status} {answer.body}")

    def go_on(self):
        """Reads and deletes succeed; a write is taken or refused, as the store has room again or not."""
        wrong = []
        for number in range(ACTIONS):
            id = next(iter(self.stored))
            answers = [("read", 200, self.wire.item("GET", CONTAINER, ["a"], id)),
                       ("delete", 204, self.wire.item("DELETE", CONTAINER, ["a"], id))]
            wrong += [f"{name} {answer.status}" for name, wanted, answer in answers if answer.status != wanted]
            del self.stored[id]
            _, answer = self.create()
            if answer.status not in (201, 507):
                wrong.append(f"create {answer.status}")
        self.check("reads and deletes go on, and writes are taken or refused", not wrong, wrong[:5])
