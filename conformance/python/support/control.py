"""The control API and the metrics: what the SDK does not tell of physical partitions."""

import http.client
import json
import re

from support.server import EMULATOR_KEY

SAMPLE = re.compile(
    r'^perihelion_partition_requests_total\{database="([^"]*)",container="([^"]*)",partition="([^"]*)"\} (\d+)', re.M)

# What a request to split may be answered while clients write: done, not to be divided, split meanwhile, busy.
SPLIT_STATUS = (200, 400, 404, 503)


def control(server, verb, path):
    """A request to the control API: status and body."""
    status, text = _ask(server, verb, f"/_control/{path}", {"Authorization": f"Bearer {EMULATOR_KEY}"})
    return status, json.loads(text)


def partitions(server, database, container):
    """The physical partitions of a container."""
    status, body = control(server, "GET", f"dbs/{database}/colls/{container}/partitions")
    assert status == 200, body
    return body["partitions"]


def split(server, database, container, partition):
    """Asks for the split of a partition: status and body."""
    return control(server, "POST", f"dbs/{database}/colls/{container}/partitions/{partition}/split")


def requests_by_partition(server, database, container):
    """How many requests each partition of a container has had, from the metrics."""
    status, text = _ask(server, "GET", "/metrics", {})
    assert status == 200, text
    found = SAMPLE.findall(text)
    return {partition: int(count) for owner, name, partition, count in found if (owner, name) == (database, container)}


def _ask(server, verb, path, headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(verb, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
