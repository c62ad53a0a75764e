"""Group transactions by hand: what clients cannot send, and multipart bodies that are broken."""

import json
import re

import pytest

from conftest import unique
from support.table import answer, azurite_lacks
from support.table_wire import MINIMAL, NO_METADATA

HEADERS = "Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"


def request(method, url, body=None, headers=HEADERS):
    text = "" if body is None else json.dumps(body)
    length = f"Content-Length: {len(text.encode())}\r\n" if body is not None else ""
    return f"{method} {url} HTTP/1.1\r\n{headers}{length}\r\n{text}"


def part(inner):
    return f"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{inner}"


def changeset(*requests, boundary="changeset_1", outer="batch_1"):
    inner = "".join(f"--{boundary}\r\n{part(one)}\r\n" for one in requests) + f"--{boundary}--\r\n"
    return f"--{outer}\r\nContent-Type: multipart/mixed; boundary={boundary}\r\n\r\n{inner}--{outer}--\r\n"


def send(wire, body, kind="multipart/mixed; boundary=batch_1", **headers):
    return wire.send("POST", "/$batch", body, {"Content-Type": kind, **headers})


class Inner:
    """One answer inside the answer."""

    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        line, *headers = head.split("\r\n")
        self.status = int(re.fullmatch(r"HTTP/1\.1 (\d{3}) [\w ]+", line)[1])
        self.headers = {name.lower(): value for name, value in (header.split(": ", 1) for header in headers)}

    @property
    def refusal(self):
        error = json.loads(self.body)["odata.error"]
        index, _, _ = error["message"]["value"].partition(":")
        return self.status, error["code"], int(index)


def inner(found):
    """The answers inside, in order; the frame is checked on the way."""
    assert found.status == 202, found
    outer = re.fullmatch(r"multipart/mixed; ?boundary=(batchresponse_[\w-]+)", found.headers["Content-Type"])[1]
    text = found.body.decode()
    assert text.startswith(f"--{outer}\r\n") and text.rstrip("\r\n").endswith(f"--{outer}--")
    boundary = re.search(r"Content-Type: multipart/mixed; ?boundary=(changesetresponse_[\w-]+)\r\n", text)[1]
    assert f"--{boundary}--\r\n" in text
    pieces = text.split(f"--{boundary}\r\n")[1:]
    answers = []
    for piece in pieces:
        head, _, rest = piece.split(f"--{boundary}--")[0].partition("\r\n\r\n")
        assert "Content-Type: application/http" in head and "Content-Transfer-Encoding: binary" in head
        answers.append(Inner(rest))
    return answers


@pytest.fixture
def url(wire, wire_table):
    return f"{wire.base}/{wire_table}"


def rows(wire, url):
    """All row keys; a page may end early, because of its size."""
    path = url.removeprefix(wire.base) + "()?$select=RowKey"
    found, token = [], ""
    for _ in range(100):
        page = wire.send("GET", path + token, headers={"Accept": NO_METADATA})
        found += [entity["RowKey"] for entity in page.json["value"]]
        names = ("NextPartitionKey", "NextRowKey")
        token = "".join(f"&{name}={page.headers[f'x-ms-continuation-{name}']}" for name in names if f"x-ms-continuation-{name}" in page.headers)
        if not token:
            return found
    raise AssertionError("the pages do not end")


def entity(row, **properties):
    return {"PartitionKey": "p", "RowKey": row, **properties}


def key(row):
    return f"(PartitionKey='p',RowKey='{row}')"


def test_every_verb(wire, url):
    for row in ("put", "merge", "delete"):
        wire.insert(url.rsplit("/", 1)[1], entity(row, old=1))
    quiet = HEADERS + "Prefer: return-no-content\r\n"
    found = inner(send(wire, changeset(
        request("POST", url, entity("echo")),
        request("POST", url, entity("quiet"), quiet),
        request("PUT", url + key("put"), {"new": 1}, HEADERS + "If-Match: *\r\n"),
        request("MERGE", url + key("merge"), {"new": 1}, HEADERS + "If-Match: *\r\n"),
        request("PATCH", url + key("upsert"), {"new": 1}),
        request("DELETE", url + key("delete"), None, "If-Match: *\r\nAccept: application/json;odata=minimalmetadata\r\n"),
    )))
    assert [one.status for one in found] == [201, 204, 204, 204, 204, 204]
    if answer(True, False):
        assert json.loads(found[0].body)["RowKey"] == "echo"
        assert found[1].headers["preference-applied"] == "return-no-content"
    assert all(one.headers["etag"].startswith("W/") for one in found[:5])
    assert rows(wire, url) == ["echo", "merge", "put", "quiet", "upsert"]


def test_line_ends_without_returns(wire, url):
    body = changeset(request("POST", url, entity("a")), request("POST", url, entity("b")))
    azurite_lacks("such line ends")
    assert [one.status for one in inner(send(wire, body.replace("\r\n", "\n")))] == [201, 201]
    assert rows(wire, url) == ["a", "b"]


def test_a_boundary_in_quotes(wire, url):
    azurite_lacks("boundaries in quotes")
    body = changeset(request("POST", url, entity("a")))
    assert [one.status for one in inner(send(wire, body, 'multipart/mixed; boundary="batch_1"'))] == [201]


def test_relative_addresses(wire, url):
    azurite_lacks("relative addresses")
    path = url.split("/", 3)[3]
    assert [one.status for one in inner(send(wire, changeset(request("POST", "/" + path, entity("a")))))] == [201]
    assert rows(wire, url) == ["a"]


def test_one_query(wire, url):
    azurite_lacks("queries of this shape")
    wire.insert(url.rsplit("/", 1)[1], entity("a", v=7))
    body = f"--batch_1\r\n{part(request('GET', url + key('a'), None))}\r\n--batch_1--\r\n"
    found = send(wire, body)
    assert found.status == 202 and b"HTTP/1.1 200 OK" in found.body and b'"v":7' in found.body


def test_the_failed_operation_is_the_only_answer(wire, url):
    wire.insert(url.rsplit("/", 1)[1], entity("taken"))
    found = inner(send(wire, changeset(*(request("POST", url, entity(row)) for row in ("a", "b", "taken", "c")))))
    assert [one.refusal for one in found] == [(409, "EntityAlreadyExists", 2)]
    assert rows(wire, url) == ["taken"]


def test_two_partition_keys(wire, url):
    body = changeset(request("POST", url, entity("a")), request("POST", url, {"PartitionKey": "q", "RowKey": "b"}))
    azurite_lacks("a check of partition keys")
    assert [one.refusal for one in inner(send(wire, body))] == [(400, "CommandsInBatchActOnDifferentPartitions", 1)]
    assert rows(wire, url) == []


def test_two_tables(wire, url):
    other = unique()
    wire.send("POST", "/Tables", {"TableName": other})
    azurite_lacks("a check of tables")
    body = changeset(request("POST", url, entity("a")), request("POST", f"{wire.base}/{other}", entity("b")))
    assert [one.refusal[:2] for one in inner(send(wire, body))] == [(400, "InvalidInput")]
    assert rows(wire, url) == []
    wire.send("DELETE", f"/Tables('{other}')")


def test_one_row_twice(wire, url):
    body = changeset(request("POST", url, entity("x")), request("PUT", url + key("a"), {"v": 1}), request("MERGE", url + key("a"), {"v": 2}))
    found = send(wire, body)
    assert rows(wire, url) == []
    assert [one.refusal[:2] for one in inner(found)] == [(400, "InvalidDuplicateRow")]
    if answer(True, False):
        assert inner(found)[0].refusal[2] == 2


@pytest.mark.parametrize("count", [1, 100])
def test_as_many_operations_as_allowed(wire, url, count):
    found = inner(send(wire, changeset(*(request("POST", url, entity(f"{row:03}")) for row in range(count)))))
    assert [one.status for one in found] == [201] * count
    assert len(rows(wire, url)) == count


def test_too_many_operations(wire, url):
    found = send(wire, changeset(*(request("POST", url, entity(f"{row:03}")) for row in range(101))))
    assert rows(wire, url) == []
    if answer(True, False):
        (only,) = inner(found)
        assert only.refusal == (400, "InvalidInput", 100)


def test_too_large(wire, url):
    azurite_lacks("a check of sizes")
    body = changeset(*(request("POST", url, entity(f"{row:02}", v="x" * 32000)) for row in range(99)))
    assert len(body) < 4 * 1024 * 1024 and send(wire, body).status == 202
    large = changeset(*(request("PUT", url + key(f"n{row:02}"), {"v": "x" * 32000, "w": "x" * 32000}) for row in range(99)))
    found = send(wire, large)
    assert found.status == 413 and found.code in ("RequestBodyTooLarge", "ContentLengthExceeded")
    assert len(rows(wire, url)) == 99


GOOD = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
BROKEN = {
    "empty": "",
    "no boundary at all": "hello",
    "another boundary": "--other\r\n\r\n--other--\r\n",
    "no changeset": "--batch_1\r\n--batch_1--\r\n",
    "an empty changeset": GOOD + "--changeset_1--\r\n--batch_1--\r\n",
    "a changeset without boundary": "--batch_1\r\nContent-Type: multipart/mixed\r\n\r\n--batch_1--\r\n",
    "a part of another type": GOOD + "--changeset_1\r\nContent-Type: text/plain\r\n\r\nhello\r\n--changeset_1--\r\n--batch_1--\r\n",
    "a part without a request": GOOD + f"--changeset_1\r\n{part('')}\r\n--changeset_1--\r\n--batch_1--\r\n",
    "a request line that is none": GOOD + f"--changeset_1\r\n{part('hello world')}\r\n--changeset_1--\r\n--batch_1--\r\n",
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_broken_bodies(wire, body):
    azurite_lacks("answers to broken bodies")
    found = send(wire, body)
    assert found.status == 400 and found.code in ("InvalidInput", "InvalidHeaderValue")


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9, 0.99])
def test_bodies_that_end_early(wire, url, cut):
    azurite_lacks("answers to broken bodies")
    body = changeset(*(request("POST", url, entity(f"{row}")) for row in range(5)))
    found = send(wire, body[: int(len(body) * cut)])
    assert found.refusal == (400, "InvalidInput")
    assert rows(wire, url) == []


@pytest.mark.parametrize("kind", ["application/json", "multipart/mixed", "multipart/mixed; boundary=", "multipart/mixed; boundary=" + "x" * 300, "text/plain"])
def test_types_of_the_body_that_are_wrong(wire, url, kind):
    azurite_lacks("answers to broken bodies")
    found = send(wire, changeset(request("POST", url, entity("a"))), kind)
    assert found.status in (400, 415) and found.code in ("InvalidInput", "InvalidHeaderValue", "MediaTypeNotSupported")
    assert rows(wire, url) == []


@pytest.mark.parametrize(
    "method, suffix, body, refusal",
    [
        ("POST", "", {"RowKey": "b"}, (400, "PropertiesNeedValue", 1)),
        ("POST", "", {"PartitionKey": "p", "RowKey": "b", "v": "x", "v@odata.type": "Edm.Int64"}, (400, "InvalidInput", 1)),
        ("PUT", "(PartitionKey='p',RowKey='a?')", {"v": 1}, (400, "InvalidInput", 1)),
        ("BREW", "(PartitionKey='p',RowKey='b')", {"v": 1}, (400, "InvalidInput", 1)),
        ("DELETE", "(PartitionKey='p',RowKey='b')", None, (400, "InvalidInput", 1)),
    ],
)
def test_a_bad_operation_is_named(wire, url, method, suffix, body, refusal):
    azurite_lacks("answers to bad operations")
    found = send(wire, changeset(request("POST", url, entity("a")), request(method, url + suffix, body)))
    (only,) = inner(found)
    assert only.status == refusal[0] and only.refusal[2] == 1, only.body
    assert rows(wire, url) == []


def test_a_query_among_writes_is_refused(wire, url):
    azurite_lacks("answers to bad operations")
    (only,) = inner(send(wire, changeset(request("POST", url, entity("a")), request("GET", url + key("b"), None))))
    assert only.refusal == (400, "InvalidInput", 1)
    assert rows(wire, url) == []


def test_only_the_outer_request_is_signed(wire, url):
    found = wire.send("POST", "/$batch", changeset(request("POST", url, entity("a"))),
                      {"Content-Type": "multipart/mixed; boundary=batch_1", "Authorization": "SharedKey devstoreaccount1:AAAA"})
    assert found.status == 403 and rows(wire, url) == []


def test_level_of_metadata_of_a_part(wire, url):
    azurite_lacks("entities in answers of transactions")
    quiet = HEADERS.replace("minimalmetadata", "nometadata")
    found = inner(send(wire, changeset(request("POST", url, entity("a"), quiet), request("POST", url, entity("b"))), Accept=MINIMAL))
    assert "odata.etag" not in json.loads(found[0].body) and "odata.etag" in json.loads(found[1].body)
