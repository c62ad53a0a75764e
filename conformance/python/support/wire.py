"""Requests by hand: signed as the protocol says, over one kept connection, answered as they came.

For what an SDK hides (headers, statuses, links by RID) and for load that an SDK is too slow to make.
"""

import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import ssl
import urllib.parse
from dataclasses import dataclass

from support.server import EMULATOR_KEY

FEEDS = {"dbs", "colls", "docs", "pkranges", "offers", "sprocs", "triggers", "udfs", "users", "permissions", "conflicts"}


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def substatus(self):
        return int(self.headers.get("x-ms-substatus", 0))


def signature(verb, resource_type, link, date, key=EMULATOR_KEY):
    """The value of the authorization header."""
    text = f"{verb.lower()}\n{resource_type.lower()}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return urllib.parse.quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="")


def signed_as(path):
    """Resource type and link of a path that names resources: a feed is signed by its owner."""
    segments = [urllib.parse.unquote(segment) for segment in path.strip("/").split("/") if segment]
    if not segments:
        return "", ""
    if segments[-1] == "partitionkeydelete":
        return "colls", "/".join(segments[:-2])
    if len(segments) % 2 == 1:
        return segments[-1], "/".join(segments[:-1])
    if segments[0] == "offers":
        return "offers", segments[1].lower()
    return segments[-2], "/".join(segments)


def signed_as_rid(path):
    """The same for a path of RIDs: only the RID of the addressed resource, in lower case."""
    segments = path.strip("/").split("/")
    if len(segments) % 2 == 1:
        return segments[-1], segments[-2].lower() if len(segments) > 1 else ""
    return segments[-2], segments[-1].lower()


def headers_for(verb, path, by_rid=False, key=EMULATOR_KEY, date=None):
    """The headers that every request needs."""
    date = date or email.utils.formatdate(usegmt=True)
    resource_type, link = signed_as_rid(path) if by_rid else signed_as(path)
    return {
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
        "authorization": signature(verb, resource_type, link, date, key),
    }


class Wire:
    """One connection to the server."""

    def __init__(self, port, secure=False, key=EMULATOR_KEY, timeout=30):
        self.port = port
        self.key = key
        self.timeout = timeout
        self.context = ssl._create_unverified_context() if secure else None
        self.connection = None

    def send(self, verb, path, body=None, headers=None, by_rid=False, sign=True):
        """Sends one request; a broken connection is the caller's to judge and is opened anew by the next call."""
        if self.connection is None:
            self.connection = self._connect()
        every = headers_for(verb, path, by_rid, self.key) if sign else {}
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        every.update(headers or {})
        if body is None and verb in ("POST", "PUT", "PATCH"):
            body = b""
        try:
            self.connection.request(verb, path, body=body, headers=every)
            response = self.connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        if response.will_close:
            self.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def item(self, verb, container, key, id=None, body=None, headers=None):
        """A request about one item of the container at this path; `key` is the list of key components."""
        path = f"{container}/docs" if id is None else f"{container}/docs/{urllib.parse.quote(id, safe='')}"
        return self.send(verb, path, body, {"x-ms-documentdb-partitionkey": json.dumps(key), **(headers or {})})

    def batch(self, container, key, steps):
        """All steps or none."""
        headers = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
        return self.item("POST", container, key, body=steps, headers=headers)

    def feed(self, path, envelope="Documents", page=1000, headers=None):
        """All resources of a feed, page by page."""
        continuation = {}
        while True:
            answer = self.send("GET", path, headers={"x-ms-max-item-count": str(page), **(headers or {}), **continuation})
            if answer.status != 200:
                raise RuntimeError(f"GET {path} was answered with {answer.status}: {answer.body[:500]!r}")
            yield from answer.json[envelope]
            if "x-ms-continuation" not in answer.headers:
                return
            continuation = {"x-ms-continuation": answer.headers["x-ms-continuation"]}

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _connect(self):
        if self.context is not None:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=self.timeout, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
