"""Policies of containers, changes of throughput, and client encryption keys by hand."""

import pytest
from azure.cosmos import PartitionKey

from conftest import unique
from support.expect import message_of

VECTORS = {
    "vectorEmbeddings": [
        {"path": "/v", "dataType": "float32", "dimensions": 16, "distanceFunction": "cosine"},
    ]
}
TEXTS = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]}
INDEXING = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}, {"path": "/v/*"}],
    "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
    "spatialIndexes": [{"path": "/loc/*", "types": ["Point", "Polygon"]}],
    "vectorIndexes": [{"path": "/v", "type": "quantizedFlat"}],
    "fullTextIndexes": [{"path": "/text"}],
}


def test_a_full_definition_comes_back_and_can_be_sent_again(database, make_container):
    computed = [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    container = make_container(
        indexing_policy=INDEXING,
        vector_embedding_policy=VECTORS,
        full_text_policy=TEXTS,
        computed_properties=computed,
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]},
        default_ttl=60,
    )
    made = container.read()
    assert made["indexingPolicy"] == INDEXING
    assert made["vectorEmbeddingPolicy"] == VECTORS and made["fullTextPolicy"] == TEXTS
    assert made["computedProperties"] == computed
    database.replace_container(
        container, PartitionKey("/pk"), indexing_policy=INDEXING, full_text_policy=TEXTS, vector_embedding_policy=VECTORS)
    replaced = container.read()
    assert "defaultTtl" not in replaced and "computedProperties" not in replaced
    # The client cannot send unique keys with a replace, and they cannot be changed.
    assert replaced["uniqueKeyPolicy"] == made["uniqueKeyPolicy"]
    assert replaced["vectorEmbeddingPolicy"] == VECTORS


@pytest.mark.parametrize(
    "options, words",
    [
        ({"indexing_policy": {**INDEXING, "includedPaths": [{"path": "/a"}]}}, "indexingPolicy"),
        ({"indexing_policy": INDEXING, "full_text_policy": TEXTS}, "not matching in Embedding's path"),
        ({"indexing_policy": INDEXING, "vector_embedding_policy": VECTORS}, "full-text policy"),
        ({"computed_properties": [{"name": "id", "query": "SELECT VALUE 1 FROM c"}]}, "computedProperties"),
        ({"conflict_resolution_policy": {"mode": "Never"}}, "conflictResolutionPolicy"),
    ],
)
def test_refusals_name_the_policy(database, options, words):
    status, text = message_of(database.create_container, unique("c"), PartitionKey("/pk"), **options)
    assert status == 400 and words in text


def test_usage_is_told_on_request(container):
    container.create_item({"id": "1", "pk": "a"})
    seen = {}
    container.read(populate_quota_info=True, response_hook=lambda headers, _: seen.update(headers))
    assert "documentsCount=1;" in seen["x-ms-resource-usage"]
    assert "storedProcedures=100;" in seen["x-ms-resource-quota"]


def test_throughput_is_changed_by_replacing_the_offer(wire, wire_container):
    container = wire.send("GET", wire_container).json
    offers = wire.send("GET", "/offers").json["Offers"]
    [offer] = [offer for offer in offers if offer["offerResourceId"] == container["_rid"]]
    offer["content"]["offerThroughput"] = 900
    path = f"/offers/{offer['_rid']}"
    answer = wire.send("PUT", path, offer)
    assert (answer.status, answer.headers["x-ms-offer-replace-pending"]) == (200, "false")
    assert answer.headers["x-ms-cosmos-min-throughput"] == "400"
    assert wire.send("GET", path).json["content"]["offerThroughput"] == 900
    migrated = wire.send("PUT", path, offer, {"x-ms-cosmos-migrate-offer-to-autopilot": "true"}).json
    assert migrated["content"]["offerAutopilotSettings"]["maxThroughput"] == 1000
    offer["content"]["offerThroughput"] = 450
    assert wire.send("PUT", path, offer).status == 400


def test_encryption_keys_survive_a_restart(own_server):
    from support.wire import Wire

    key = {
        "id": "k",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AQIDBA==",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    }
    with Wire(own_server.port) as wire:
        assert wire.send("POST", "/dbs", {"id": "d"}).status == 201
        made = wire.send("POST", "/dbs/d/clientencryptionkeys", key)
        assert made.status == 201
        assert wire.send("DELETE", "/dbs/d/clientencryptionkeys/k").status == 405
    own_server.kill()
    own_server.start()
    with Wire(own_server.port) as wire:
        assert wire.send("GET", "/dbs/d/clientencryptionkeys/k").json == made.json
