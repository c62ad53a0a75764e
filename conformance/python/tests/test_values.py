"""What goes in comes out: numbers to the bit, text, depth, size, ids."""

import json
import math
import struct

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from support.expect import message_of, plain, status_of

INTEGERS = [0, 1, -1, 2**31, -2**31 - 1, 2**53, 2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63]
DOUBLES = [0.1, -0.1, 1 / 3, 1e21, 1e-7, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 123456789.123456789,
           4.35, 0.000001, 9007199254740993.5]
TEXTS = ["", "ünïcödé", "数据库", "🙂👩‍👩‍👧", "\u0000\u0001\u001f", "\u2028\u2029", "quote\" back\\ slash/", "tab\tline\nreturn\r",
         "\ufeff", "\uffff", "x" * 10000]


def bits(number):
    return struct.pack(">d", number)


@pytest.mark.parametrize("number", INTEGERS)
def test_integers_are_exact(container, number):
    item = container.create_item({"id": "1", "pk": "a", "n": number})
    read = container.read_item("1", "a")["n"]
    assert item["n"] == read == number and isinstance(read, int)


@pytest.mark.parametrize("number", DOUBLES)
def test_doubles_are_exact_to_the_bit(container, number):
    container.create_item({"id": "1", "pk": "a", "n": number})
    assert bits(float(container.read_item("1", "a")["n"])) == bits(number)


def test_many_doubles_are_exact_to_the_bit(container):
    import random

    chance = random.Random(7)
    numbers = []
    while len(numbers) < 2000:
        number = struct.unpack(">d", chance.randbytes(8))[0]
        if math.isfinite(number):
            numbers.append(number)
    container.create_item({"id": "1", "pk": "a", "n": numbers})
    assert [bits(float(number)) for number in container.read_item("1", "a")["n"]] == [bits(number) for number in numbers]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
def test_text_is_exact(container, text):
    container.create_item({"id": "1", "pk": "a", "t": text, "names": {text: text}})
    item = container.read_item("1", "a")
    assert item["t"] == text and item["names"] == {text: text}


def test_the_order_of_properties_is_kept(container):
    body = {"z": 1, "id": "1", "a": {"y": 1, "b": 2}, "pk": "a", "m": [{"k": 1, "c": 2}]}
    container.create_item(body)
    assert json.dumps(plain(container.read_item("1", "a"))) == json.dumps(body)


def test_empty_things_stay_empty(container):
    body = {"id": "1", "pk": "a", "o": {}, "l": [], "s": "", "n": None, "deep": [[], [{}], {"x": []}]}
    container.create_item(body)
    assert plain(container.read_item("1", "a")) == body


def nested(depth, leaf=1):
    """A document whose deepest value stands `depth` levels down, the document itself being the first."""
    value = leaf
    for _ in range(depth - 1):
        value = [value]
    return {"id": "1", "pk": "a", "deep": value}


def test_128_levels_are_stored_and_129_refused(container):
    container.create_item(nested(128))
    assert plain(container.read_item("1", "a")) == nested(128)
    assert status_of(container.upsert_item, nested(129))[0] == 400
    assert plain(container.read_item("1", "a")) == nested(128)


def test_an_absurd_depth_is_refused_and_harms_nobody(container, server):
    from support.wire import Wire

    text = b'{"id":"1","pk":"a","deep":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with Wire(server.port) as wire:
        assert wire.send("POST", "/dbs", text).status == 400
    assert server.is_running()


ITEM_BYTES_MAX = 2 * 1024 * 1024


def sized(size):
    """An item whose JSON text, as the SDK writes it, has so many bytes."""
    body = {"id": "1", "pk": "a", "t": ""}
    body["t"] = "x" * (size - len(json.dumps(body, separators=(",", ":"))))
    return body


def test_an_item_just_under_two_megabytes_is_stored(container):
    body = sized(ITEM_BYTES_MAX - 1024)
    container.create_item(body)
    assert plain(container.read_item("1", "a")) == body
    container.replace_item("1", {**body, "v": 2})
    assert [item["v"] for item in container.read_all_items()] == [2]


def test_an_item_over_two_megabytes_is_refused(container):
    status, message = message_of(container.create_item, sized(ITEM_BYTES_MAX + 1024))
    assert status == 413 and "too large" in message
    assert list(container.read_all_items()) == []


def test_a_patch_cannot_grow_an_item_beyond_the_limit(container):
    container.create_item(sized(ITEM_BYTES_MAX - 1024))
    patch = [{"op": "add", "path": "/more", "value": "x" * 4096}]
    assert status_of(container.patch_item, "1", "a", patch)[0] == 413
    assert "more" not in container.read_item("1", "a")


GOOD_IDS = ["a b", " leading", "100%", "%41", "a+b", "a&b=c", "ünïcödé", "数据", "🙂", "a:b@c", "a'b\"c", "(a)[b]{c}", "a;b,c", "..", ".",
            "-", "~", "x" * 255, "x" * 1023, "é" * 511]


@pytest.mark.parametrize("id", GOOD_IDS, ids=lambda id: ascii(id)[:20])
def test_ids_with_unusual_characters(container, id):
    container.create_item({"id": id, "pk": "a", "v": 1})
    if id in (".", ".."):
        # Clients and proxies take such a path apart; the item is still found by its feed and in batches.
        assert [item["id"] for item in container.read_all_items()] == [id]
        return
    assert container.read_item(id, "a")["id"] == id
    assert container.replace_item(id, {"id": id, "pk": "a", "v": 2})["v"] == 2
    assert container.patch_item(id, "a", [{"op": "incr", "path": "/v", "value": 1}])["v"] == 3
    container.delete_item(id, "a")
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize("id", ["a/b", "a\\b", "a?b", "a#b", "a\tb", "a\nb", "x" * 1024, "é" * 512], ids=lambda id: ascii(id)[:20])
def test_forbidden_ids_are_refused(container, id):
    with pytest.raises((CosmosHttpResponseError, ValueError)) as raised:
        container.create_item({"id": id, "pk": "a"})
    assert getattr(raised.value, "status_code", 400) == 400
    assert list(container.read_all_items()) == []
