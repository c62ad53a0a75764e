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

from support.wire import headers_for

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
# How long a client waits that was sent away, as the server asks it to.
AGAIN_SECONDS = 0.5

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


QUERIES = {
    "threefold joins": joined,
    "nested EXISTS": nested,
    "thousands of patterns": patterns,
    "IN of 16,000 over joins": candidates,
    "a million groups": groups,
}


class Attack:
    """Clients of one kind, in a process of their own: they take no time from those who measure."""

    def __init__(self, clients, port, *arguments):
        self.process = multiprocessing.get_context("fork").Process(
            target=_attack, args=(clients, port, *arguments), daemon=True
        )

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        """All its connections break."""
        self.process.kill()
        self.process.join()


def _attack(clients, port, *arguments):
    os.nice(10)
    clients(port, *arguments)
    while True:
        time.sleep(60)


def _in_threads(count, work):
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()


def _request(verb, path, headers, body=b"", length=None):
    """The bytes of a signed request."""
    every = {"host": "localhost", **headers_for(verb, path), **headers}
    every["content-length"] = str(len(body) if length is None else length)
    lines = "".join(f"{name}: {value}\r\n" for name, value in every.items())
    return f"{verb} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def _exchange(connection, request):
    """Sends a request and reads its answer to the end; tells the status."""
    connection.sendall(request)
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(1 << 16)
        if not more:
            raise ConnectionError("the server hung up")
        head += more
    head, rest = head.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(rest) < length:
        more = connection.recv(1 << 20)
        if not more:
            raise ConnectionError("the server hung up")
        rest = rest[len(rest):]
        length -= len(more)
    return int(head.split()[1])


def _again_and_again(port, request):
    """Sends the same request for ever; one that was sent away waits a moment."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                while True:
                    if _exchange(connection, request()) in (429, 503):
                        time.sleep(AGAIN_SECONDS)
        except OSError:
            time.sleep(AGAIN_SECONDS)


def ask(port, count, text):
    """So many clients that ask the same query."""
    headers = {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-partitionkey": '["a"]',
    }
    body = json.dumps({"query": text, "parameters": []}).encode()
    _in_threads(count, lambda: _again_and_again(port, lambda: _request("POST", f"{CONTAINER}/docs", headers, body)))


def read_in_batches(port, count):
    """Batches of large reads."""
    headers = {
        "x-ms-documentdb-partitionkey": '["a"]',
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-atomic": "True",
    }
    body = json.dumps([{"operationType": "Read", "id": "large"}] * BATCH_READS).encode()
    _in_threads(count, lambda: _again_and_again(port, lambda: _request("POST", f"{CONTAINER}/docs", headers, body)))


def send_half(port):
    """Bodies that never come to their end."""
    headers = {"x-ms-documentdb-partitionkey": '["a"]', "content-type": "application/json"}
    half = b'{"id":"half","pk":"a","t":"' + b"x" * 4096
    connections = []
    for _ in range(HALF_BODIES):
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(_request("POST", f"{CONTAINER}/docs", headers, half, length=1_000_000))
            connections.append(connection)
        except OSError:
            time.sleep(AGAIN_SECONDS)
    while True:
        time.sleep(60)


def take_nothing(port):
    """HTTP/2 streams that ask for a large item and never take a byte of it."""
    connections = []
    for _ in range(WINDOW_CONNECTIONS):
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
    while True:
        time.sleep(60)
