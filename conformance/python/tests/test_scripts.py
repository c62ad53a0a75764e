"""Definitions of stored procedures, triggers and user-defined functions, and the conflicts feed."""

import pytest
from azure.cosmos import documents

from conftest import unique
from support.expect import status_of

KINDS = ["stored_procedure", "trigger", "user_defined_function"]


def definition(name):
    return {
        "id": name,
        "serverScript": None,
        "body": "function () { return 1; }",
        "triggerType": documents.TriggerType.Pre,
        "triggerOperation": documents.TriggerOperation.Create,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_are_created_read_replaced_listed_and_deleted(container, kind):
    scripts = container.scripts
    call = lambda verb, *arguments: getattr(scripts, f"{verb}_{kind}")(*arguments)  # noqa: E731
    names = [unique("script") for _ in range(3)]
    for name in names:
        assert call("create", definition(name))["id"] == name
    assert status_of(getattr(scripts, f"create_{kind}"), definition(names[0])) == (409, 0)
    listed = getattr(scripts, f"list_{kind}s")(max_item_count=2)
    assert [found["id"] for found in listed] == names
    read = call("get", names[0])
    assert read["body"] == definition("")["body"] and read["_self"].endswith(f"{read['_rid']}/")
    replaced = call("replace", names[0], {**definition(names[0]), "body": "function () { return 2; }"})
    assert "return 2" in replaced["body"] and replaced["_etag"] != read["_etag"]
    call("delete", names[0])
    assert status_of(getattr(scripts, f"get_{kind}"), names[0]) == (404, 0)


def test_a_trigger_comes_back_as_it_was_sent(container):
    sent = definition(unique("trigger"))
    made = container.scripts.create_trigger(sent)
    assert (made["triggerType"], made["triggerOperation"]) == (sent["triggerType"], sent["triggerOperation"])


def test_there_are_no_conflicts(container):
    assert list(container.list_conflicts()) == []
    assert status_of(container.get_conflict, "x", "a") == (404, 0)
