"""Stored procedures, triggers and user-defined functions that are executed: patterns of applications."""

import threading
from pathlib import Path
from urllib.parse import unquote

import pytest
from azure.cosmos import CosmosClient, PartitionKey, documents
from azure.cosmos.exceptions import CosmosHttpResponseError

from conftest import unique
from support.blocking import Blocking
from support.expect import message_of, status_of
from support.server import EMULATOR_KEY, Server
from support.server import run as program

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# A time of scripts in which so many items can neither be imported nor deleted, and how many are not to be deleted.
SHORT_MS = 200
ITEMS = 20_000
KEPT = 100
# Bounds a test whose procedure gets nowhere.
CALLS_MAX = 1_000


def text(name):
    return (SCRIPTS / f"{name}.js").read_text()


def procedure(container, name):
    return container.scripts.create_stored_procedure({"id": name, "body": text(name)})["id"]


def trigger(container, name, time, operation=documents.TriggerOperation.All):
    body = {"id": name, "serverScript": None, "body": text(name), "triggerType": time, "triggerOperation": operation}
    return container.scripts.create_trigger(body)["id"]


def execute(container, name, parameters, **options):
    """The two clients name the parameters differently."""
    execute = container.scripts.execute_stored_procedure
    word = "parameters" if isinstance(container, Blocking) else "params"
    return execute(name, **{word: parameters}, **options)


def run(container, name, *parameters, key="k"):
    return execute(container, name, list(parameters), partition_key=key)


def ids(container):
    return sorted(item["id"] for item in container.read_all_items())


def test_a_book_and_the_count_of_its_author(container):
    procedure(container, "insertBook")
    container.create_item({"id": "a", "pk": "k", "type": "author"})
    book = {"id": "b1", "pk": "k", "type": "book", "authorId": "a"}
    assert run(container, "insertBook", book) == {"book": "b1", "countOfBooks": 1}
    assert run(container, "insertBook", {**book, "id": "b2"}) == {"book": "b2", "countOfBooks": 2}
    missing = {**book, "id": "b3", "authorId": "nobody"}
    assert status_of(run, container, "insertBook", missing) == (400, 404)
    assert status_of(run, container, "insertBook", book) == (400, 409)
    assert ids(container) == ["a", "b1", "b2"]


def test_a_post_trigger_counts_and_a_pre_trigger_refuses(container):
    trigger(container, "countBook", documents.TriggerType.Post, documents.TriggerOperation.Create)
    trigger(container, "checkAuthor", documents.TriggerType.Pre)
    container.create_item({"id": "a", "pk": "k", "type": "author"})
    options = {"pre_trigger_include": "checkAuthor", "post_trigger_include": "countBook"}
    made = container.create_item({"id": "b1", "pk": "k", "authorId": "a"}, **options)
    assert made["checked"] is True
    assert container.read_item("a", "k")["countOfBooks"] == 1
    dangling = {"id": "b2", "pk": "k", "authorId": "nobody"}
    assert status_of(container.create_item, dangling, **options) == (400, 409)
    assert ids(container) == ["a", "b1"]
    assert status_of(container.create_item, dangling, pre_trigger_include="countBook") == (400, 0)
    assert status_of(container.create_item, dangling, pre_trigger_include="nothing") == (400, 0)
    replaced = container.replace_item("b1", {"id": "b1", "pk": "k", "authorId": "a"}, pre_trigger_include="checkAuthor")
    assert replaced["checked"] is True
    assert status_of(container.replace_item, "b1", made, post_trigger_include="countBook") == (400, 0)


def test_the_latest_state_across_readings(container):
    procedure(container, "setLatestStateAcrossReadings")
    reading = lambda time, value: {  # noqa: E731
        "id": f"r{time}", "pk": "k", "deviceId": "d", "type": "reading", "time": time, "value": value
    }
    states = [run(container, "setLatestStateAcrossReadings", reading(*each)) for each in [(5, "e"), (3, "c"), (9, "i")]]
    assert states == ["e", "e", "i"]
    assert container.read_item("latest", "k")["time"] == 9


def test_bulk_import_upsert_and_delete(container):
    procedure(container, "bulkImport")
    procedure(container, "bulkDelete")
    items = [{"id": f"i{n}", "pk": "k", "n": n} for n in range(30)]
    assert run(container, "bulkImport", items, False) == 30
    assert status_of(run, container, "bulkImport", items[29:], False) == (400, 409)
    changed = [{"id": f"i{n}", "pk": "k", "n": n + 1000} for n in range(20, 40)]
    assert run(container, "bulkImport", changed, True) == 20
    numbers = sorted(item["n"] for item in container.read_all_items())
    assert numbers == [*range(20), *range(1020, 1040)]
    deleted = run(container, "bulkDelete", "SELECT * FROM c WHERE c.n >= 10")
    assert deleted == {"deleted": 30, "continuation": False}
    assert len(ids(container)) == 10


class Calls:
    """Calls of a procedure that stops when its time is used up: after each, as much is committed as it has told."""

    def __init__(self, container):
        self.container = container
        self.good = self.late = 0

    def run(self, name, *parameters):
        """What the procedure answers, or `None` if it was stopped: then nothing of the call is committed."""
        assert self.good + self.late < CALLS_MAX
        try:
            answer = run(self.container, name, *parameters)
        except CosmosHttpResponseError as error:
            assert error.status_code == 408, error
            self.late += 1
            return None
        self.good += 1
        return answer

    def count(self):
        [count] = self.container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="k")
        return count


def test_bulk_procedures_go_on_where_they_stopped(tmp_path):
    flags = ["--script-timeout-ms", str(SHORT_MS)]
    with Server(tmp_path / "data", *flags) as server, CosmosClient(server.endpoint(), EMULATOR_KEY) as client:
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        procedure(container, "bulkImport")
        procedure(container, "bulkDelete")
        items = [{"id": f"i{n}", "pk": "k", "n": n} for n in range(ITEMS)]
        calls, done = Calls(container), 0
        while done < ITEMS:
            done += calls.run("bulkImport", items[done:], False) or 0
            assert calls.count() == done
        assert calls.good > 1
        calls, deleted, more = Calls(container), 0, True
        while more:
            answer = calls.run("bulkDelete", f"SELECT * FROM c WHERE c.n >= {KEPT}")
            if answer:
                deleted, more = deleted + answer["deleted"], answer["continuation"]
            assert calls.count() == ITEMS - deleted
        assert calls.good > 1
        assert sorted(item["n"] for item in container.read_all_items()) == list(range(KEPT))


def test_a_throw_after_two_creates_leaves_nothing(container):
    procedure(container, "throwAfterTwo")
    status, message = message_of(run, container, "throwAfterTwo", "k")
    assert status == 400 and "after two" in message and "throwAfterTwo.js:8" in message
    assert ids(container) == []


def test_counters_of_concurrent_clients_are_not_lost(container):
    procedure(container, "increment")
    failures = []

    def count():
        try:
            for _ in range(5):
                run(container, "increment", "counter", "k", 2)
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert container.read_item("counter", "k")["value"] == 40


def test_patterns_with_triggers_and_pages(container):
    procedure(container, "nextPage")
    procedure(container, "softDelete")
    trigger(container, "autoIncrement", documents.TriggerType.Pre, documents.TriggerOperation.Create)
    trigger(container, "unique", documents.TriggerType.Pre)
    numbers = [
        container.create_item({"id": f"i{n}", "pk": "k", "name": f"n{n}"}, pre_trigger_include="autoIncrement")["number"]
        for n in range(5)
    ]
    assert numbers == [1, 2, 3, 4, 5]
    taken = {"id": "other", "pk": "k", "name": "n3"}
    assert status_of(container.upsert_item, taken, pre_trigger_include="unique") == (400, 409)
    assert container.upsert_item({**taken, "name": "free"}, pre_trigger_include="unique")["name"] == "free"
    query, pages, continuation = "SELECT VALUE c.id FROM c WHERE c.number > 0 ORDER BY c.number", [], None
    while True:
        page = run(container, "nextPage", query, 2, continuation)
        pages.append(page["items"])
        continuation = page["continuation"]
        if not continuation:
            break
    assert [each for page in pages for each in page] == ["i0", "i1", "i2", "i3", "i4"]
    assert max(len(page) for page in pages) == 2
    assert run(container, "softDelete", "i1", 3600) == {"id": "i1", "isDeleted": True, "ttl": 3600}
    assert status_of(run, container, "softDelete", "absent", 1) == (400, 404)


def test_user_defined_functions_in_queries(container):
    container.scripts.create_user_defined_function({"id": "tax", "body": text("tax")})
    for n, income in enumerate([500, 5_000, 50_000]):
        container.create_item({"id": str(n), "pk": f"k{n}", "income": income})
    query = "SELECT VALUE udf.tax(c.income) FROM c WHERE udf.tax(c.income) >= 1000"
    everywhere = {} if isinstance(container, Blocking) else {"enable_cross_partition_query": True}
    found = container.query_items(query, **everywhere)
    assert sorted(found) == [1000, 20_000]
    one = container.query_items("SELECT c.id, udf.tax(c.income) AS tax FROM c", partition_key="k0")
    assert list(one) == [{"id": "0", "tax": 50}]
    failing = lambda text: list(container.query_items(text, partition_key="k0"))  # noqa: E731
    status, message = message_of(failing, "SELECT VALUE udf.tax(c.missing) FROM c")
    assert status == 400 and "no income" in message and "tax.js:3" in message
    assert status_of(failing, "SELECT VALUE udf.absent(c.id) FROM c") == (400, 0)


def test_parameters_results_and_logs(container):
    body = "function (a) { console.log('got %s', typeof a); getContext().getResponse().setBody(a); }"
    container.scripts.create_stored_procedure({"id": "echo", "body": body})
    for value in ["text", 7, 2.5, True, None, [1, [2]], {"a": {"b": "ü"}}]:
        assert run(container, "echo", value) == value
    execute(container, "echo", ["x"], partition_key="k", enable_script_logging=True)
    headers = container.client_connection.last_response_headers
    assert "got string" in unquote(headers["x-ms-documentdb-script-log-results"])
    assert status_of(run, container, "absent") == (404, 0)
    assert status_of(run, container, "echo", key=None) == (400, 0)


@pytest.mark.parametrize("kind", ["stored_procedure", "trigger", "user_defined_function"])
def test_text_that_is_no_function_is_refused(container, kind):
    body = {"id": "bad", "serverScript": None, "body": "function () {\n  var = 1;\n}", "triggerType": "pre", "triggerOperation": "all"}
    status, message = message_of(getattr(container.scripts, f"create_{kind}"), body)
    assert status == 400 and "SyntaxError" in message and "line 2" in message


def test_hierarchical_keys(database):
    container = database.create_container(unique("c"), PartitionKey(path=["/tenant", "/user"], kind="MultiHash"))
    body = "function (item) { __.createDocument(__.getSelfLink(), item, function (err) { if (err) throw err; }); }"
    container.scripts.create_stored_procedure({"id": "create", "body": body})
    item = {"id": "1", "tenant": "t", "user": "u"}
    run(container, "create", item, key=["t", "u"])
    assert container.read_item("1", ["t", "u"])["user"] == "u"
    assert status_of(run, container, "create", {**item, "user": "v"}, key=["t", "u"]) == (400, 400)


def test_a_procedure_is_tried_from_the_shell(server, tmp_path):
    with CosmosClient(server.endpoint("http"), EMULATOR_KEY) as client:
        database = client.create_database(unique("db"))
        container = database.create_container("c", PartitionKey(path="/pk"))
        file = tmp_path / "procedure.js"
        address = server.endpoint("http").removeprefix("http://").rstrip("/")
        place = ["--database", database.id, "--container", "c", "--partition-key", '"k"']
        words = [str(file), *place, "--nosql", address, "--data", server.data]

        def run(source, *more):
            file.write_text(source)
            return program("script", "run", *words, *more)

        done = run(text("increment"), "--parameters", '["counter", "k", 5]')
        assert done.returncode == 0 and "result: 5" in done.stdout and " RU, time: " in done.stdout, done
        done = run("function () { throw new Error('thrown'); }")
        assert done.returncode != 0 and "thrown" in done.stderr, done
        done = run("function () { console.log('a %s', 7); }")
        assert done.returncode == 0 and "a 7" in done.stdout and "result: nothing" in done.stdout, done
        assert list(container.scripts.list_stored_procedures()) == []
        done = run("function () {}", "--parameters", "{}")
        assert done.returncode != 0 and "JSON array" in done.stderr, done
        client.delete_database(database.id)


def test_a_script_is_checked_from_the_shell(tmp_path):
    file = tmp_path / "script.js"
    file.write_text("function () {\n  setTimeout(f, 1);\n}")
    done = program("script", "check", str(file))
    assert done.returncode == 0 and ":2: warning:" in done.stdout, done
    file.write_text("function () {\n  var = 1;\n}")
    done = program("script", "check", str(file))
    assert done.returncode == 1 and "script.js:2:" in done.stderr, done
