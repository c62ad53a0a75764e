"""What clients cannot send or hide: signatures by hand, levels of metadata, verbs, headers, styles of address."""

import json
import re

import pytest

from conftest import unique
from support.server import EMULATOR_KEY
from support.table import ACCOUNT, ACCOUNT_KEY, answer, azurite_lacks
from support.table_wire import FULL, MINIMAL, NO_METADATA, now

KEY = "(PartitionKey='a',RowKey='b')"
ENTITY = {"PartitionKey": "a", "RowKey": "b"}
TYPED = {
    **ENTITY, "small": 3, "real": 3.5, "whole": 3.0, "whole@odata.type": "Edm.Double", "large": "5", "large@odata.type": "Edm.Int64",
    "when": "2024-02-03T04:05:06.7891234Z", "when@odata.type": "Edm.DateTime", "nan": "NaN", "nan@odata.type": "Edm.Double",
    "guid": "c9da6455-213d-42c9-9a79-3e9149a57833", "guid@odata.type": "Edm.Guid", "bytes": "AAE=", "bytes@odata.type": "Edm.Binary",
    "flag": True, "text": "x",
}
ETAG = re.compile(r"""W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'\"""")
GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def plain(body):
    """The properties without what the service adds."""
    return {name: value for name, value in body.items() if not name.startswith("odata.") and not name.startswith("Timestamp")}


# Signatures


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_both_schemes_of_signature(wire, wire_table, scheme):
    assert wire.send("POST", f"/{wire_table}", ENTITY, scheme_of_key=scheme).status == 201
    assert wire.send("GET", f"/{wire_table}{KEY}", scheme_of_key=scheme).status == 200
    assert wire.send("GET", f"/{wire_table}()?$top=1&$filter=RowKey%20eq%20%27b%27", scheme_of_key=scheme).status == 200
    acl = wire.send("GET", f"/{wire_table}?comp=acl", headers={"Accept": "application/xml"}, scheme_of_key=scheme)
    assert acl.status == 200
    wrong = wire.send("GET", f"/{wire_table}{KEY}", scheme_of_key=scheme, key=EMULATOR_KEY)
    assert wrong.status == 403


def test_the_signature_covers_what_it_must(wire, wire_table):
    """A signature of one request is not good for another one."""
    azurite_lacks("JSON bodies of refusals")
    path = f"/{ACCOUNT}/Tables"
    sent = {"x-ms-date": now(), "x-ms-version": "2019-02-02", "Accept": MINIMAL}
    good = {**sent, "Authorization": wire.authorization("GET", path, sent, "SharedKey")}
    assert wire.bare("GET", path, headers=good).status == 200
    # Query parameters other than `comp` are not covered.
    assert wire.bare("GET", path + "?$top=1", headers=good).status == 200
    for method, target, change in (
        ("GET", f"/{ACCOUNT}/{wire_table}", {}),
        ("POST", path, {}),
        ("GET", path, {"x-ms-date": now(1)}),
        ("GET", path, {"Content-Type": "application/json"}),
        ("GET", path, {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}),
        ("GET", path + "?comp=x", {}),
    ):
        assert wire.bare(method, target, headers={**good, **change}).refusal == (403, "AuthenticationFailed")


def test_the_date_may_be_in_either_header(wire):
    date = now()
    sent = {"Date": date, "x-ms-date": None}
    assert wire.send("GET", "/Tables", headers=sent).status == 200
    # The date of the service wins over the one of HTTP.
    azurite_lacks("this order")
    assert wire.send("GET", "/Tables", headers={"Date": now(-600)}).status == 200


@pytest.mark.parametrize("minutes, status", [(-10, 200), (10, 200), (-20, 403), (20, 403)])
def test_the_clock_may_be_a_quarter_of_an_hour_off(wire, minutes, status):
    if status == 403:
        azurite_lacks("a check of the clock")
    found = wire.send("GET", "/Tables", headers={"x-ms-date": now(minutes)})
    assert found.status == status
    if status == 403:
        assert found.code == "AuthenticationFailed"


@pytest.mark.parametrize(
    "authorization",
    ["", "SharedKey", "SharedKey x", f"SharedKey {ACCOUNT}", f"SharedKey {ACCOUNT}:", f"SharedKey {ACCOUNT}:AAAA", "SharedKey :AAAA",
     f"Unknown {ACCOUNT}:AAAA", f"SharedKey {ACCOUNT}:not base 64", "Bearer x", "x" * 5000],
)
def test_bad_authorization_is_refused(wire, authorization):
    found = wire.send("GET", "/Tables", headers={"Authorization": authorization})
    assert found.status in answer((400, 401, 403), (400, 401, 403, 500))
    if answer(True, False):
        assert found.code in ("AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation")


def test_no_authorization_is_refused(wire):
    found = wire.send("GET", "/Tables", scheme_of_key=None)
    assert found.status in (401, 403)
    if answer(True, False):
        assert found.code in ("NoAuthenticationInformation", "AuthenticationFailed")


def test_no_date_is_refused(wire):
    azurite_lacks("a check of the clock")
    found = wire.send("GET", "/Tables", headers={"x-ms-date": None})
    assert found.status in (400, 403)


# Addresses


@pytest.mark.parametrize("host", [f"{ACCOUNT}.table.core.windows.net", f"{ACCOUNT}.table.localhost", f"{ACCOUNT}.table.cosmos.azure.com"])
def test_the_account_may_be_in_the_host(wire, wire_table, service, host):
    if not host.endswith("localhost"):
        azurite_lacks("this suffix")
    host = f"{host}:{service.port}"
    assert wire.send("POST", f"/{wire_table}", ENTITY, host=host).status == 201
    found = wire.send("GET", f"/{wire_table}{KEY}", host=host, headers={"Accept": FULL})
    assert found.status == 200 and plain(found.json)["RowKey"] == "b"
    if answer(True, False):
        assert found.json["odata.metadata"] == f"{wire.scheme}://{host}/$metadata#{wire_table}/@Element"
        assert found.json["odata.id"].startswith(f"{wire.scheme}://{host}/{wire_table}(")
    assert wire.send("GET", f"/{wire_table}{KEY}").status == 200


def test_the_secondary_address_reads(wire, wire_table):
    wire.insert(wire_table, ENTITY)
    full = f"/{ACCOUNT}-secondary/{wire_table}{KEY}"
    sent = {"x-ms-date": now(), "x-ms-version": "2019-02-02", "Accept": MINIMAL}
    # Clients sign the address that they send, or the primary one.
    for signed in (full, full.replace("-secondary", "")):
        authorization = wire.authorization("GET", signed, sent, "SharedKey")
        assert wire.bare("GET", full, headers={**sent, "Authorization": authorization}).status == 200


def test_statistics_are_xml(wire):
    azurite_lacks("statistics of the primary address")
    found = wire.send("GET", "/?restype=service&comp=stats", headers={"Accept": "application/xml"})
    assert found.status == 200 and found.headers["Content-Type"].startswith("application/xml")
    assert b"<StorageServiceStats>" in found.body and b"<GeoReplication>" in found.body and b"<Status>" in found.body


def test_names_of_keys_may_come_in_any_order_and_case_of_encoding(wire, wire_table):
    assert wire.insert(wire_table, {"PartitionKey": "ü'(", "RowKey": "x,y"}).status == 201
    for key in ("(PartitionKey='%C3%BC''(',RowKey='x,y')", "(PartitionKey='%c3%bc%27%27%28',RowKey='x%2Cy')"):
        assert wire.send("GET", f"/{wire_table}{key}").status == 200
    azurite_lacks("keys in another order")
    assert wire.send("GET", f"/{wire_table}(RowKey='x,y',PartitionKey='%C3%BC''(')").status == 200


# Levels of metadata


def test_minimal_metadata_names_the_types_that_json_cannot_tell(wire, wire_table):
    found = wire.insert(wire_table, TYPED)
    assert found.status == 201 and ETAG.fullmatch(found.headers["ETag"])
    read = wire.send("GET", f"/{wire_table}{KEY}")
    for one in (found, read):
        body = one.json
        assert body["odata.metadata"] == f"{wire.base}/$metadata#{wire_table}/@Element"
        assert body["odata.etag"] == found.headers["ETag"]
        types = {name: value for name, value in body.items() if name.endswith("@odata.type")}
        assert types == {
            "large@odata.type": "Edm.Int64", "when@odata.type": "Edm.DateTime", "guid@odata.type": "Edm.Guid",
            "bytes@odata.type": "Edm.Binary", "nan@odata.type": "Edm.Double",
        }
        assert {name: body[name] for name in TYPED if "@" not in name} == {name: value for name, value in TYPED.items() if "@" not in name}
        # A whole double is told from a whole number by its point.
        assert b'"whole":3.0' in one.body and b'"small":3,' in one.body
    assert read.headers["ETag"] == found.headers["ETag"]


def test_without_metadata_there_are_values_only(wire, wire_table):
    wire.insert(wire_table, TYPED)
    for found in (
        wire.send("GET", f"/{wire_table}{KEY}", headers={"Accept": NO_METADATA}),
        wire.send("GET", f"/{wire_table}{KEY}?$format={NO_METADATA.replace(';', '%3B')}"),
    ):
        assert found.headers["Content-Type"].startswith(NO_METADATA)
        assert set(found.json) == {name for name in TYPED if "@" not in name} | {"Timestamp"}
    page = wire.send("GET", f"/{wire_table}()", headers={"Accept": NO_METADATA}).json
    assert set(page) == {"value"} and set(page["value"][0]) == set(found.json)


def test_full_metadata_has_links_and_types(wire, wire_table):
    wire.insert(wire_table, TYPED)
    found = wire.send("GET", f"/{wire_table}{KEY}", headers={"Accept": FULL})
    assert found.headers["Content-Type"].startswith(FULL)
    body = found.json
    assert body["odata.type"] == f"{ACCOUNT}.{wire_table}"
    assert body["odata.id"] == f"{wire.base}/{wire_table}{KEY}"
    assert body["odata.editLink"] == f"{wire_table}{KEY}"
    assert body["Timestamp@odata.type"] == "Edm.DateTime"
    page = wire.send("GET", f"/{wire_table}()", headers={"Accept": FULL}).json
    assert page["value"][0]["odata.id"] == body["odata.id"]


def test_tables_at_all_levels(wire, wire_table):
    one = f"/Tables('{wire_table}')"
    within = f"/Tables?$filter=TableName%20eq%20'{wire_table}'"
    assert wire.send("GET", within, headers={"Accept": NO_METADATA}).json == {"value": [{"TableName": wire_table}]}
    assert wire.send("GET", within).json == {"odata.metadata": f"{wire.base}/$metadata#Tables", "value": [{"TableName": wire_table}]}
    full = wire.send("GET", within, headers={"Accept": FULL}).json["value"][0]
    assert full["odata.type"] == f"{ACCOUNT}.Tables" and full["odata.editLink"] == one[1:]
    assert full["odata.id"] == f"{wire.base}{one}"
    azurite_lacks("one table")
    assert wire.send("GET", one).json == {"odata.metadata": f"{wire.base}/$metadata#Tables/@Element", "TableName": wire_table}
    assert wire.send("GET", f"/Tables('{unique()}')").refusal == (404, "ResourceNotFound")


def test_the_metadata_of_a_page_names_its_table(wire, wire_table):
    found = wire.send("GET", f"/{wire_table}()").json
    assert found == {"odata.metadata": answer(f"{wire.base}/$metadata#{wire_table}", f"{wire.base}/$metadata#Tables/@Element"), "value": []}


@pytest.mark.parametrize("accept", ["application/json", "application/json;odata=minimalmetadata;charset=utf-8"])
def test_json_means_minimal_metadata(wire, wire_table, accept):
    if "charset" in accept:
        azurite_lacks("more parameters of a type")
    wire.insert(wire_table, ENTITY)
    found = wire.send("GET", f"/{wire_table}{KEY}", headers={"Accept": accept})
    assert found.headers["Content-Type"].startswith(MINIMAL) and "odata.etag" in found.json


def test_the_type_of_an_answer_repeats_the_level(wire):
    expected = answer(f"{MINIMAL};streaming=true;charset=utf-8", MINIMAL)
    assert wire.send("GET", "/Tables").headers["Content-Type"] == expected


def test_atom_is_refused(wire):
    found = wire.send("GET", "/Tables", headers={"Accept": "application/atom+xml"})
    assert found.status == 415 and found.headers["x-ms-error-code"] == "AtomFormatNotSupported"


# Verbs


@pytest.mark.parametrize("method, extra", [("MERGE", {}), ("PATCH", {}), ("POST", {"X-HTTP-Method": "MERGE"}), ("POST", {"X-HTTP-Method": "PATCH"})])
def test_all_spellings_of_merge(wire, wire_table, method, extra):
    if extra.get("X-HTTP-Method") == "PATCH":
        azurite_lacks("this tunnel")
    path = f"/{wire_table}{KEY}"
    assert wire.send(method, path, {"x": 1}, {**extra, "If-Match": "*"}).refusal == (404, "ResourceNotFound")
    inserted = wire.send(method, path, {"x": 1}, extra)
    assert inserted.status == 204 and inserted.body == b""
    merged = wire.send(method, path, {"y": 2}, {**extra, "If-Match": inserted.headers["ETag"]})
    assert merged.status == 204 and ETAG.fullmatch(merged.headers["ETag"]) and merged.headers["ETag"] != inserted.headers["ETag"]
    stale = wire.send(method, path, {"y": 3}, {**extra, "If-Match": inserted.headers["ETag"]})
    assert stale.refusal == (412, "UpdateConditionNotSatisfied")
    read = wire.send("GET", path)
    assert (read.json["x"], read.json["y"], read.headers["ETag"]) == (1, 2, merged.headers["ETag"])


def test_tunnels_of_other_verbs(wire, wire_table):
    path = f"/{wire_table}{KEY}"
    azurite_lacks("these tunnels")
    assert wire.send("POST", path, {"x": 1}, {"X-HTTP-Method": "PUT"}).status == 204
    assert wire.send("POST", path, None, {"X-HTTP-Method": "DELETE", "If-Match": "*", "Content-Length": "0"}).status == 204
    assert wire.send("GET", path).refusal == (404, "ResourceNotFound")
    assert wire.send("POST", path, {"x": 1}, {"X-HTTP-Method": "BREW"}).status in (400, 405)


def test_replace_and_delete(wire, wire_table):
    path = f"/{wire_table}{KEY}"
    assert wire.send("PUT", path, {"x": 1}, {"If-Match": "*"}).refusal == (404, "ResourceNotFound")
    assert wire.send("PUT", path, {"x": 1}).status == 204
    assert wire.send("PUT", path, {"y": 1}, {"If-Match": "*"}).status == 204
    assert plain(wire.send("GET", path).json) == {**ENTITY, "y": 1}
    assert wire.send("DELETE", path).status == 400
    assert wire.send("DELETE", path, headers={"If-Match": "W/\"datetime'2020-01-01T00%3A00%3A00Z'\""}).refusal == (
        412, "UpdateConditionNotSatisfied"
    )
    gone = wire.send("DELETE", path, headers={"If-Match": "*"})
    assert gone.status == 204 and gone.body == b""
    assert wire.send("DELETE", path, headers={"If-Match": "*"}).refusal == (404, "ResourceNotFound")


def test_deleting_an_absent_table_is_refused(wire):
    assert wire.send("DELETE", f"/Tables('{unique()}')").refusal == (404, "ResourceNotFound")


@pytest.mark.parametrize("method, path", [("PUT", "/Tables"), ("DELETE", "/Tables"), ("PATCH", "/Tables"), ("GET", "/$batch"), ("OPTIONS", "/Tables"), ("BREW", "/Tables")])
def test_other_verbs_are_refused(wire, method, path):
    assert wire.send(method, path, {}).status in answer((400, 403, 405, 501), (400, 403, 404, 405, 500, 501))


# Headers


def test_prefer_decides_whether_an_insert_answers_the_entity(wire, wire_table):
    found = wire.insert(wire_table, {**ENTITY, "RowKey": "1"}, Prefer="return-no-content")
    assert (found.status, found.body) == (204, b"")
    assert found.headers["Preference-Applied"] == "return-no-content" and ETAG.fullmatch(found.headers["ETag"])
    key = f"{wire.base}/{wire_table}(PartitionKey='a',RowKey='1')"
    if answer(True, False):
        assert found.headers["Location"] == found.headers["DataServiceId"] == key
    found = wire.insert(wire_table, {**ENTITY, "RowKey": "2"}, Prefer="return-content")
    assert found.status == 201 and found.headers["Preference-Applied"] == "return-content" and found.json["RowKey"] == "2"
    found = wire.insert(wire_table, {**ENTITY, "RowKey": "3"})
    assert found.status == 201 and found.json["RowKey"] == "3"
    name = unique()
    found = wire.send("POST", "/Tables", {"TableName": name}, {"Prefer": "return-no-content"})
    assert (found.status, found.body, found.headers["Preference-Applied"]) == (204, b"", "return-no-content")
    assert wire.send("DELETE", f"/Tables('{name}')").status == 204


def test_headers_of_every_answer(wire, wire_table):
    mine = "6b2f9f4e-0000-4000-8000-000000000001"
    for found in (
        wire.send("GET", "/Tables", headers={"x-ms-client-request-id": mine}),
        wire.send("GET", f"/{wire_table}{KEY}", headers={"x-ms-client-request-id": mine}),
        wire.send("PUT", f"/{wire_table}{KEY}", {}, {"x-ms-client-request-id": mine}),
        wire.send("GET", f"/{wire_table}?comp=acl", headers={"x-ms-client-request-id": mine, "Accept": "application/xml"}),
    ):
        assert GUID.fullmatch(found.headers["x-ms-request-id"]) and found.headers["Date"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.headers["x-ms-version"])
        if found.status < 400:
            assert found.headers["x-ms-client-request-id"] == mine
        else:
            assert found.headers["x-ms-error-code"] == "ResourceNotFound"
            assert found.headers["x-ms-client-request-id"] == answer(mine, None)
            assert f"RequestId:{found.headers['x-ms-request-id']}" in found.json["odata.error"]["message"]["value"]


def test_answers_carry_their_charge(wire, wire_table):
    azurite_lacks("charges")
    for found in (wire.insert(wire_table, ENTITY), wire.send("GET", f"/{wire_table}{KEY}"), wire.send("GET", f"/{wire_table}()")):
        assert float(found.headers["x-ms-request-charge"]) > 0


def test_throughput_at_creation(wire):
    for headers in ({"x-ms-offer-throughput": "800"}, {"x-ms-cosmos-offer-autopilot-settings": json.dumps({"maxThroughput": 4000})}):
        name = unique()
        assert wire.send("POST", "/Tables", {"TableName": name}, headers).status == 201
        assert wire.send("DELETE", f"/Tables('{name}')").status == 204
    azurite_lacks("throughput")
    name = unique()
    for headers in ({"x-ms-offer-throughput": "no number"}, {"x-ms-offer-throughput": "401"}, {"x-ms-offer-throughput": "0"}):
        assert wire.send("POST", "/Tables", {"TableName": name}, headers).status == 400
    assert wire.send("DELETE", f"/Tables('{name}')").status == 404


def test_continuation_is_in_headers_and_parameters(wire, wire_table):
    for number in range(5):
        wire.insert(wire_table, {"PartitionKey": "ü &", "RowKey": f"{number}"})
    found, path, rows = None, f"/{wire_table}()?$top=2", []
    for _ in range(10):
        found = wire.send("GET", path)
        rows += [entity["RowKey"] for entity in found.json["value"]]
        token = [(name, found.headers.get(f"x-ms-continuation-{name}")) for name in ("NextPartitionKey", "NextRowKey")]
        if token[0][1] is None:
            break
        path = f"/{wire_table}()?$top=2" + "".join(f"&{name}={value}" for name, value in token if value is not None)
        # The token is text for an address as it is.
        assert path.isascii() and " " not in path
    assert rows == ["0", "1", "2", "3", "4"]


def test_plain_and_tls_share_a_port(service):
    from support.table_wire import TableWire

    azurite_lacks("two schemes on one port")
    for scheme in ("http", "https"):
        with TableWire(service, scheme) as wire:
            found = wire.send("GET", "/Tables")
            assert found.status == 200 and found.json["odata.metadata"].startswith(f"{scheme}://")


def test_the_account_key_is_the_published_one(wire):
    assert wire.key == ACCOUNT_KEY and wire.send("GET", "/Tables?$top=1").status == 200
