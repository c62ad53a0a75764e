"""The service itself: its properties and statistics; the documented walk; a restart."""

import datetime

from azure.core import MatchConditions
from azure.data.tables import TableAnalyticsLogging, TableCorsRule, TableMetrics, TableRetentionPolicy

from conftest import Connect, unique
from support.table import DATA, Service, azurite_lacks
from support.table_expect import keys, refused
from support.table_values import entity, normal


def test_statistics(client):
    azurite_lacks("statistics")
    found = client.get_service_stats()["geo_replication"]
    assert found["status"] in ("live", "unavailable", "bootstrap")
    assert found["last_sync_time"] is None or isinstance(found["last_sync_time"], datetime.datetime)


def test_service_properties(client):
    azurite_lacks("service properties")
    kept = TableRetentionPolicy(enabled=True, days=5)
    client.set_service_properties(
        analytics_logging=TableAnalyticsLogging(read=True, write=True, delete=False, retention_policy=kept),
        hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=kept),
        minute_metrics=TableMetrics(enabled=False),
        cors=[
            TableCorsRule(["https://www.contoso.example"], ["GET", "PUT"], max_age_in_seconds=30, exposed_headers=["x-ms-meta-*"]),
            TableCorsRule(["*"], ["POST"], allowed_headers=["x-ms-meta-data", "Accept"]),
        ],
    )
    found = client.get_service_properties()
    logging = found["analytics_logging"]
    assert (logging.read, logging.write, logging.delete, logging.retention_policy.days) == (True, True, False, 5)
    assert found["hour_metrics"].enabled and found["hour_metrics"].include_apis
    assert not found["minute_metrics"].enabled
    first, second = found["cors"]
    assert (first.allowed_origins, first.allowed_methods, first.max_age_in_seconds) == (["https://www.contoso.example"], ["GET", "PUT"], 30)
    assert (second.allowed_origins, second.allowed_headers) == (["*"], ["x-ms-meta-data", "Accept"])
    # What is not named is kept; an empty list is not the same as none.
    client.set_service_properties(cors=[])
    found = client.get_service_properties()
    assert found["cors"] == [] and found["analytics_logging"].read
    off = TableRetentionPolicy(enabled=False)
    client.set_service_properties(
        analytics_logging=TableAnalyticsLogging(retention_policy=off), hour_metrics=TableMetrics(), minute_metrics=TableMetrics()
    )
    assert not client.get_service_properties()["analytics_logging"].read


def test_too_many_rules_are_refused(client):
    rules = [TableCorsRule([f"https://{number}.example"], ["GET"]) for number in range(6)]
    azurite_lacks("service properties")
    assert refused(client.set_service_properties, cors=rules)[0] == 400
    assert client.get_service_properties()["cors"] == []


def test_the_documented_walk(client):
    """Makes a table with throughput if it is absent, adds people, retrieves one of them, and the family of one."""
    walk = DATA["walk"]
    name = unique(walk["table"])
    throughput = {"x-ms-offer-throughput": str(walk["throughput"])}
    for _ in range(2):
        table = client.create_table_if_not_exists(name, headers=throughput)
    for person in walk["people"]:
        table.upsert_entity(person)
    ben = table.get_entity("Smith", "Ben")
    assert dict(ben) == walk["people"][0]
    ben["email"] = "ben.smith@contoso.example"
    table.update_entity(ben, mode="replace", etag=ben.metadata["etag"], match_condition=MatchConditions.IfNotModified)
    family = list(table.query_entities("PartitionKey eq 'Smith'"))
    assert keys(family) == [("Smith", "Ben"), ("Smith", "Jeff")]
    assert family[0]["email"] == "ben.smith@contoso.example"
    assert keys(table.query_entities("PartitionKey eq 'Smith' and RowKey lt 'E'")) == [("Smith", "Ben")]
    table.delete_entity("Smith", "Ben")
    assert refused(table.get_entity, "Smith", "Ben") == (404, "ResourceNotFound")
    client.delete_table(name)


def test_a_restart_keeps_everything(tmp_path, event_loop_thread):
    azurite_lacks("a restart")
    with Service(tmp_path) as service:
        connect = Connect(("sync", "http"), service, event_loop_thread)
        client = connect.client()
        table = client.create_table(unique())
        for row in DATA["rows"]:
            table.create_entity(entity(row))
        before = [(dict(found), found.metadata["etag"]) for found in table.list_entities()]
        for end in (service.server.stop, service.server.kill):
            end()
            service.server.start()
            after = [(dict(found), found.metadata["etag"]) for found in table.list_entities()]
            assert after == before
            assert [normal(value) for row, _ in after for value in row.values()] == [
                normal(value) for row, _ in before for value in row.values()
            ]
            assert table.upsert_entity(entity(DATA["rows"][0]))["etag"] not in [tag for _, tag in before]
            before = [(dict(found), found.metadata["etag"]) for found in table.list_entities()]
        connect.close()
