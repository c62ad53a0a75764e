"""What hostile clients do, each kind in a process of its own that holds its connections until it is ended."""

import json
import multiprocessing
import os
import socket
import threading
import time

import h2.config
import h2.connection
import h2.settings

from support.server import EMULATOR_KEY
from support.wire import Wire, headers_for

CONTAINER = "/dbs/db/colls/c"
LARGE_BYTES = 1_800_000
ELEMENTS = 2_000
GROUP_ELEMENTS = 1_000
PATTERNS = 2_000
CANDIDATES = 16_000
HALF_BODIES = 2_000
WINDOW_CONNECTIONS = 4
WINDOW_STREAMS = 100
BATCH_READS = 100
# A query of one item whose function is hostile.
ENDLESS_QUERY = "SELECT VALUE udf.hostile() FROM c WHERE c.id = 'small'"
# How long a client waits that was sent away, about as the server asks it to.
AGAIN_SECONDS = 0.5
# Until the connections of an attack are there.
BEGIN_SECONDS_MAX = 60

JOINS = "FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x WHERE c.id = 'wide'"


def items():
    """The items that attacks are about, and the one that the bystander reads."""
    return [
        {"id": "small", "pk": "a", "n": 1},
        {"id": "wide", "pk": "a", "x": list(range(ELEMENTS)), "s": "abcdefghij" * 20},
        {"id": "groups", "pk": "a", "x": list(range(GROUP_ELEMENTS))},
        {"id": "large", "pk": "a", "t": "x" * LARGE_BYTES},
    ]


def joined():
    return f"SELECT VALUE COUNT(1) {JOINS}"


def nested():
    inner = "EXISTS(SELECT VALUE d FROM d IN c.x WHERE d = -1 - a - b)"
    middle = f"EXISTS(SELECT VALUE b FROM b IN c.x WHERE {inner})"
    return f"SELECT VALUE COUNT(1) FROM c WHERE c.id = 'wide' AND EXISTS(SELECT VALUE a FROM a IN c.x WHERE {middle})"


def patterns():
    matches = (f"RegexMatch(c.s, '(\\\\w{{20}}[^x]{{20}}){{3}}{number}')" for number in range(PATTERNS))
    return f"SELECT VALUE c.id FROM c WHERE c.id = 'wide' AND ({' OR '.join(matches)})"


def candidates():
    listed = ", ".join(str(-1 - number) for number in range(CANDIDATES))
    return f"SELECT VALUE COUNT(1) {JOINS} AND (a * b + d) IN ({listed})"


def groups():
    return "SELECT a, b, COUNT(1) AS n FROM c JOIN a IN c.x JOIN b IN c.x WHERE c.id = 'groups' GROUP BY a, b"


def arrays():
    return f"SELECT VALUE ARRAY(SELECT VALUE [a, b, d] FROM a IN c.x JOIN b IN c.x JOIN d IN c.x) FROM c WHERE c.id = 'wide'"


def fill(port):
    """Makes the container and the items; answers the statuses of the items."""
    with Wire(port) as wire:
        wire.send("POST", "/dbs", {"id": "db"})
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
        # The large values are not what is tested here, and to index them takes its time.
        definition["indexingPolicy"] = {"excludedPaths": [{"path": "/x/*"}, {"path": "/t/*"}]}
        wire.send("POST", "/dbs/db/colls", definition)
        return [wire.item("POST", CONTAINER, ["a"], body=item).status for item in items()]


QUERIES = {
    "threefold joins": joined,
    "nested EXISTS": nested,
    "thousands of patterns": patterns,
    "IN of 16,000 over joins": candidates,
    "a million groups": groups,
}


class Attack:
    """Clients of one kind, in a process of their own: they take no time from those who measure.

    `count` of them tell when they have sent their first request.
    """

    def __init__(self, clients, port, count, *arguments):
        context = multiprocessing.get_context("fork")
        self.count = count
        self.sent = context.Semaphore(0)
        self.process = context.Process(target=_attack, args=(clients, port, count, self.sent, *arguments), daemon=True)

    def __enter__(self):
        """Goes on when all of them have sent something."""
        self.process.start()
        for _ in range(self.count):
            if not self.sent.acquire(timeout=BEGIN_SECONDS_MAX):
                raise TimeoutError("the attack did not begin")
        return self

    def __exit__(self, *_):
        """All its connections break."""
        self.process.kill()
        self.process.join()


def _attack(clients, port, count, sent, *arguments):
    os.nice(10)
    held = clients(port, count, sent, *arguments)
    while True:
        time.sleep(60)
        assert held is not None


def _request(verb, path, headers, body=b"", length=None, key=EMULATOR_KEY):
    """The bytes of a signed request."""
    every = {"host": "localhost", **headers_for(verb, path, key=key), **headers}
    every["content-length"] = str(len(body) if length is None else length)
    lines = "".join(f"{name}: {value}\r\n" for name, value in every.items())
    return f"{verb} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def _answer(connection):
    """Reads an answer to its end; tells the status."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(1 << 16)
        if not more:
            raise ConnectionError("the server hung up")
        head += more
    head, rest = head.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    length -= len(rest)
    while length > 0:
        more = connection.recv(1 << 20)
        if not more:
            raise ConnectionError("the server hung up")
        length -= len(more)
    return int(head.split()[1])


def _again_and_again(port, sent, request):
    """Sends the same request for ever; one that was sent away waits a moment."""
    is_first = True
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                while True:
                    connection.sendall(request())
                    if is_first:
                        sent.release()
                    is_first = False
                    if _answer(connection) in (429, 503):
                        time.sleep(AGAIN_SECONDS)
        except OSError:
            time.sleep(AGAIN_SECONDS)


def _in_threads(port, count, sent, request):
    threads = [threading.Thread(target=_again_and_again, args=(port, sent, request), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def ask(port, count, sent, text, key=EMULATOR_KEY):
    """So many clients that ask the same query."""
    headers = {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-partitionkey": '["a"]',
    }
    body = json.dumps({"query": text, "parameters": []}).encode()
    return _in_threads(port, count, sent, lambda: _request("POST", f"{CONTAINER}/docs", headers, body, key=key))


def execute(port, count, sent, procedure):
    """So many clients that execute the same procedure."""
    headers = {"x-ms-documentdb-partitionkey": '["a"]'}
    return _in_threads(port, count, sent, lambda: _request("POST", f"{CONTAINER}/sprocs/{procedure}", headers, b"[]"))


def create(port, count, sent, trigger):
    """So many clients that create an item with the same trigger before it."""
    headers = {"x-ms-documentdb-partitionkey": '["a"]', "x-ms-documentdb-pre-trigger-include": trigger}
    body = json.dumps({"id": "triggered", "pk": "a"}).encode()
    return _in_threads(port, count, sent, lambda: _request("POST", f"{CONTAINER}/docs", headers, body))


def read_in_batches(port, count, sent):
    """Batches of large reads."""
    headers = {
        "x-ms-documentdb-partitionkey": '["a"]',
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-atomic": "True",
    }
    body = json.dumps([{"operationType": "Read", "id": "large"}] * BATCH_READS).encode()
    return _in_threads(port, count, sent, lambda: _request("POST", f"{CONTAINER}/docs", headers, body))


def send_half(port, count, sent):
    """Bodies that never come to their end."""
    headers = {"x-ms-documentdb-partitionkey": '["a"]', "content-type": "application/json"}
    half = b'{"id":"half","pk":"a","t":"' + b"x" * 4096
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(_request("POST", f"{CONTAINER}/docs", headers, half, length=1_000_000))
        connections.append(connection)
        sent.release()
    return connections


def take_nothing(port, count, sent):
    """HTTP/2 streams that ask for a large item and never take a byte of it."""
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port))
        state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        state.local_settings[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = 0
        state.initiate_connection()
        path = f"{CONTAINER}/docs/large"
        for stream in range(WINDOW_STREAMS):
            signed = {**headers_for("GET", path), "x-ms-documentdb-partitionkey": '["a"]'}
            head = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
            state.send_headers(2 * stream + 1, head + list(signed.items()), end_stream=True)
        connection.sendall(state.data_to_send())
        connections.append(connection)
        sent.release()
    return connections
