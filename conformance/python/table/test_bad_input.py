"""Bad input in every field: the documented code, a body of the documented shape, and nothing written."""

import http.client
import ssl

import pytest

from conftest import unique
from support.table import answer, azurite_lacks
from support.table_wire import NO_METADATA

ENTITY = {"PartitionKey": "a", "RowKey": "b"}
INVALID = (400, "InvalidInput")


def typed(value, kind):
    return {**ENTITY, "v": value, "v@odata.type": f"Edm.{kind}"}


BODIES = {
    "nothing": ("", INVALID),
    "no JSON": ("{", INVALID),
    "text after JSON": ('{"PartitionKey":"a","RowKey":"b"}x', INVALID),
    "a list": ([], INVALID),
    "a text": ('"x"', INVALID),
    "no UTF-8": (b'{"PartitionKey":"a","RowKey":"\xff"}', INVALID),
    "no partition key": ({"RowKey": "b"}, (400, "PropertiesNeedValue")),
    "no row key": ({"PartitionKey": "a"}, (400, "PropertiesNeedValue")),
    "a null key": ({"PartitionKey": None, "RowKey": "b"}, (400, "PropertiesNeedValue")),
    "a key that is no text": ({"PartitionKey": 3, "RowKey": "b"}, INVALID),
    "a name twice": ('{"PartitionKey":"a","RowKey":"b","v":1,"v":2}', (400, "DuplicatePropertiesSpecified")),
    "an object": ({**ENTITY, "v": {"x": 1}}, INVALID),
    "an array": ({**ENTITY, "v": [1]}, INVALID),
    "a whole number that is too large": ({**ENTITY, "v": 2147483648}, INVALID),
    "a number that is too large": ('{"PartitionKey":"a","RowKey":"b","v":1e999}', INVALID),
    "an unknown type": (typed("x", "Unknown"), INVALID),
    "a type that is no text": ({**ENTITY, "v": 1, "v@odata.type": 3}, INVALID),
    "Int32 that is no number": (typed("x", "Int32"), INVALID),
    "Int32 that is too large": (typed(2147483648, "Int32"), INVALID),
    "Int32 with a fraction": (typed(1.5, "Int32"), INVALID),
    "Int64 that is no number": (typed("x", "Int64"), INVALID),
    "Int64 that is too large": (typed("9223372036854775808", "Int64"), INVALID),
    "Int64 that is empty": (typed("", "Int64"), INVALID),
    "Double that is no number": (typed("x", "Double"), INVALID),
    "Double in another spelling": (typed("nan", "Double"), INVALID),
    "Boolean that is text": (typed("yes", "Boolean"), INVALID),
    "Boolean that is a number": (typed(1, "Boolean"), INVALID),
    "DateTime that is no date": (typed("yesterday", "DateTime"), INVALID),
    "DateTime of the thirtieth of February": (typed("2024-02-30T00:00:00Z", "DateTime"), INVALID),
    "DateTime before 1601": (typed("1600-12-31T23:59:59Z", "DateTime"), INVALID),
    "DateTime that is a number": (typed(5, "DateTime"), INVALID),
    "Guid that is too short": (typed("c9da6455", "Guid"), INVALID),
    "Guid with another letter": (typed("g9da6455-213d-42c9-9a79-3e9149a57833", "Guid"), INVALID),
    "Binary that is no base64": (typed("*", "Binary"), INVALID),
    "Binary without its padding": (typed("AAE", "Binary"), INVALID),
    "String that is a number": (typed(3, "String"), INVALID),
    "a name with a minus": ({**ENTITY, "a-b": 1}, (400, "PropertyNameInvalid")),
    "a name with a space": ({**ENTITY, "a b": 1}, (400, "PropertyNameInvalid")),
    "a name that begins with a digit": ({**ENTITY, "1a": 1}, (400, "PropertyNameInvalid")),
    "an empty name": ({**ENTITY, "": 1}, (400, "PropertyNameInvalid")),
    "a name that is too long": ({**ENTITY, "n" * 256: 1}, (400, "PropertyNameTooLong")),
    "text that is too long": ({**ENTITY, "v": "x" * 32769}, (400, "PropertyValueTooLarge")),
    "bytes that are too long": (typed("AAAA" * 21846, "Binary"), (400, "PropertyValueTooLarge")),
    "too many properties": ({**ENTITY, **{f"p{number}": 1 for number in range(253)}}, (400, "TooManyProperties")),
    "too much in all": ({**ENTITY, **{f"p{number}": "x" * 32768 for number in range(17)}}, (400, "EntityTooLarge")),
    "a key that is too long": ({"PartitionKey": "k" * 513, "RowKey": "b"}, (400, "KeyValueTooLarge")),
    "a key with a slash": ({"PartitionKey": "a/b", "RowKey": "b"}, (400, "OutOfRangeInput")),
    "a key with a control character": ({"PartitionKey": "a", "RowKey": "b\u0001"}, (400, "OutOfRangeInput")),
}


@pytest.mark.parametrize("body, refusal", BODIES.values(), ids=BODIES.keys())
def test_bodies_of_an_insert(wire, wire_table, body, refusal):
    azurite_lacks("most checks of bodies")
    found = wire.send("POST", f"/{wire_table}", body)
    assert found.refusal == refusal
    assert wire.send("GET", f"/{wire_table}()", headers={"Accept": NO_METADATA}).json == {"value": []}


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize(
    "body, refusal",
    [
        ("{", INVALID), ([], INVALID), (typed("x", "Int64"), INVALID), ({"a-b": 1}, (400, "PropertyNameInvalid")),
        ({"PartitionKey": "other", "RowKey": "b"}, INVALID), ({"RowKey": "other"}, INVALID), ({"v": {}}, INVALID),
        ({"v": "x" * 32769}, (400, "PropertyValueTooLarge")),
    ],
)
def test_bodies_of_an_update(wire, wire_table, method, body, refusal):
    azurite_lacks("most checks of bodies")
    path = f"/{wire_table}(PartitionKey='a',RowKey='b')"
    wire.insert(wire_table, {**ENTITY, "v": "old"})
    before = wire.send("GET", path).json
    for headers in ({}, {"If-Match": "*"}):
        assert wire.send(method, path, body, headers).refusal == refusal
    assert wire.send("GET", path).json == before


def test_a_merge_that_makes_an_entity_too_large(wire, wire_table):
    azurite_lacks("a check of sizes")
    path = f"/{wire_table}(PartitionKey='a',RowKey='b')"
    wire.insert(wire_table, {**ENTITY, **{f"p{number}": number for number in range(252)}})
    assert wire.send("MERGE", path, {"p0": "changed", "p251": "changed"}).status == 204
    assert wire.send("MERGE", path, {"q": 1}).refusal == (400, "TooManyProperties")
    assert wire.send("PUT", path, {f"p{number}": "x" * 32768 for number in range(15)}).status == 204
    assert wire.send("MERGE", path, {"q": "x" * 32768, "r": "x" * 32768}).refusal == (400, "EntityTooLarge")
    assert "q" not in wire.send("GET", path).json


PATHS = {
    "no such form": "/{table}(x)",
    "one key": "/{table}(PartitionKey='a')",
    "another key": "/{table}(PartitionKey='a',Other='b')",
    "a key twice": "/{table}(PartitionKey='a',PartitionKey='b')",
    "a third key": "/{table}(PartitionKey='a',RowKey='b',Other='c')",
    "no quotes": "/{table}(PartitionKey=a,RowKey=b)",
    "a quote that does not end": "/{table}(PartitionKey='a,RowKey='b')",
    "a bracket that does not end": "/{table}(PartitionKey='a',RowKey='b'",
    "encoding that is no UTF-8": "/{table}(PartitionKey='%FF',RowKey='b')",
    "encoding that is none": "/{table}(PartitionKey='%zz',RowKey='b')",
    "a segment more": "/{table}(PartitionKey='a',RowKey='b')/v",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_paths(wire, wire_table, method, path):
    azurite_lacks("most checks of paths")
    headers = {"If-Match": "*"} if method == "DELETE" else {}
    found = wire.send(method, path.format(table=wire_table), {} if method == "PUT" else None, headers)
    assert found.status in (400, 404, 405) and found.code
    assert wire.send("GET", f"/{wire_table}()", headers={"Accept": NO_METADATA}).json == {"value": []}


@pytest.mark.parametrize(
    "query",
    ["$top=0", "$top=-1", "$top=1001", "$top=x", "$top=", "$top=99999999999999999999", "$format=application/unknown",
     "$filter=x", "$filter=x%20eq", "$filter=x%20eq%20'", "$filter=x%20eq%20%FF", "NextPartitionKey=%FF"],
)
def test_queries(wire, wire_table, query):
    azurite_lacks("most checks of queries")
    found = wire.send("GET", f"/{wire_table}()?{query}")
    if query in ("$filter=x", "$top="):
        assert found.status in (200, 400)
    else:
        assert found.status in (400, 415) and found.code


@pytest.mark.parametrize("option", ["$orderby=RowKey", "$skip=1", "$expand=x", "$inlinecount=allpages"])
def test_options_that_the_service_does_not_have(wire, wire_table, option):
    azurite_lacks("checks of options")
    found = wire.send("GET", f"/{wire_table}()?{option}")
    assert found.status in (400, 501) and found.code in ("InvalidInput", "NotImplemented")


def test_an_empty_filter_is_none(wire, wire_table):
    wire.insert(wire_table, ENTITY)
    assert len(wire.send("GET", f"/{wire_table}()?$filter=").json["value"]) == 1
    assert len(wire.send("GET", f"/{wire_table}()?$filter=&$select=").json["value"]) == 1


def test_filters_that_are_large(wire, wire_table):
    azurite_lacks("bounds of filters")
    wire.insert(wire_table, ENTITY)
    long = "RowKey%20eq%20'" + "x" * 20000 + "'"
    assert wire.send("GET", f"/{wire_table}()?$filter={long}").json["value"] == []
    for text in ("RowKey%20eq%20'" + "x" * 100_000 + "'", "(" * 10_000 + "RowKey%20eq%20'b'" + ")" * 10_000, "not%20" * 10_000 + "x"):
        assert is_too_long(wire, f"/{wire_table}()?$filter={text}")
    assert wire.send("GET", f"/{wire_table}()").status == 200


def is_too_long(wire, path):
    """Whether an address is refused: by an answer, or by an end of the connection before all of it was sent."""
    try:
        return wire.send("GET", path).status in (400, 413, 414, 431)
    except (ConnectionError, ssl.SSLError, http.client.HTTPException):
        wire.close()
        return True


NAMES = {
    "nothing": ({}, INVALID),
    "another name": ({"Name": "abc"}, INVALID),
    "a number": ({"TableName": 5}, INVALID),
    "null": ({"TableName": None}, INVALID),
    "an empty name": ({"TableName": ""}, (400, "OutOfRangeInput")),
    "two letters": ({"TableName": "ab"}, (400, "OutOfRangeInput")),
    "too long": ({"TableName": "x" * 64}, (400, "OutOfRangeInput")),
    "a digit first": ({"TableName": "1abc"}, (400, "InvalidResourceName")),
    "a minus": ({"TableName": "a-bc"}, (400, "InvalidResourceName")),
    "a slash": ({"TableName": "a/bc"}, (400, "InvalidResourceName")),
    "another alphabet": ({"TableName": "täble"}, (400, "InvalidResourceName")),
    "the reserved name": ({"TableName": "Tables"}, (400, "InvalidResourceName")),
    "no JSON": ("{", INVALID),
    "a list": ([], INVALID),
}


@pytest.mark.parametrize("body, refusal", NAMES.values(), ids=NAMES.keys())
def test_names_of_tables(wire, body, refusal):
    azurite_lacks("some checks of names")
    found = wire.send("POST", "/Tables", body)
    assert found.status == 400 and found.code in (refusal[1], "InvalidInput", "InvalidResourceName", "OutOfRangeInput")


@pytest.mark.parametrize("path", ["/", "/x", "/nobody/Tables", "/nobody", "/devstoreaccount1/../Tables", "//"])
def test_addresses_without_an_account(wire, path):
    found = wire.bare("GET", path, headers={"Accept": "application/json"})
    assert 400 <= found.status < 500


@pytest.mark.parametrize(
    "headers",
    [{"x-ms-version": "yesterday"}, {"If-Match": "x"}, {"If-Match": "W/\"datetime'x'\""}, {"If-Match": ""}, {"DataServiceVersion": "99.0"},
     {"Content-Type": "text/plain"}, {"Content-Type": "application/atom+xml"}],
)
def test_headers_of_an_update(wire, wire_table, headers):
    azurite_lacks("most checks of headers")
    wire.insert(wire_table, {**ENTITY, "v": 1})
    path = f"/{wire_table}(PartitionKey='a',RowKey='b')"
    found = wire.send("PUT", path, {"v": 2}, headers)
    assert found.status in (204, 400, 412, 415)
    expected = 2 if found.status == 204 else 1
    assert wire.send("GET", path).json["v"] == expected
    if "If-Match" in headers and headers["If-Match"]:
        assert found.status in (400, 412)


ACL = "<?xml version='1.0' encoding='utf-8'?><SignedIdentifiers>{}</SignedIdentifiers>"
ONE = "<SignedIdentifier><Id>{}</Id><AccessPolicy>{}</AccessPolicy></SignedIdentifier>"


@pytest.mark.parametrize(
    "body",
    ["x", "<SignedIdentifiers>", ACL.format("<Other/>"), ACL.format(ONE.format("x" * 65, "")), ACL.format(ONE.format("", "")),
     ACL.format(ONE.format("a", "<Start>yesterday</Start>")), ACL.format(ONE.format("a", "<Permission>xyz</Permission>")),
     ACL.format(ONE.format("a", "") * 2), ACL.format("".join(ONE.format(number, "") for number in range(6))),
     '<!DOCTYPE x [<!ENTITY y "z">]>' + ACL.format(ONE.format("&y;", ""))],
)
def test_access_policies(wire, wire_table, body):
    azurite_lacks("most checks of policies")
    path = f"/{wire_table}?comp=acl"
    found = wire.send("PUT", path, body, {"Content-Type": "application/xml", "Accept": "application/xml"})
    assert found.status == 400 and found.headers["x-ms-error-code"] in ("InvalidXmlDocument", "InvalidInput", "InvalidXmlNodeValue")
    assert b"<SignedIdentifier>" not in wire.send("GET", path, headers={"Accept": "application/xml"}).body


@pytest.mark.parametrize(
    "body",
    ["", "x", "<StorageServiceProperties>", "<Other/>",
     "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule></Cors></StorageServiceProperties>",
     "<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>perhaps</Enabled></HourMetrics></StorageServiceProperties>"],
)
def test_service_properties(wire, body):
    azurite_lacks("most checks of properties")
    path = "/?restype=service&comp=properties"
    before = wire.send("GET", path, headers={"Accept": "application/xml"}).body
    found = wire.send("PUT", path, body, {"Content-Type": "application/xml", "Accept": "application/xml"})
    assert found.status == 400 and found.headers["x-ms-error-code"]
    assert wire.send("GET", path, headers={"Accept": "application/xml"}).body == before


@pytest.mark.parametrize("sas", ["sv=x", "sig=AAAA", "sv=2019-02-02&ss=t&srt=sco&sp=r&se=yesterday&sig=AAAA", "sv=2019-02-02&tn=x&sp=r&sig=%FF"])
def test_signatures_in_the_address(wire, sas):
    found = wire.bare("GET", f"/{wire.account}/Tables?{sas}", headers={"Accept": "application/json;odata=nometadata"})
    assert found.status in answer((400, 401, 403), (400, 401, 403, 500))


def test_a_table_of_a_name_that_is_none(wire):
    for path in ("/a-b()", "/1a", f"/{unique()}()"):
        found = wire.send("GET", path)
        assert found.status in (400, 404)
