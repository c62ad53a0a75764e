"""Two kinds of clients that carry out one recorded operation: by hand and through the SDK.

An operation is a list of steps, all or none of them, and the way to send it: a single write or read, a batch, a stored
procedure, or a write with triggers. Both answer in the words of the judge's file: `done`, `refused` or `unknown`.
"""

import json

from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from support import steps as scripts
from support.server import EMULATOR_KEY
from support.wire import Wire

DATABASE = "histories"
CONTAINER = "c"
PROCEDURE, PRE_TRIGGER, POST_TRIGGER = "steps", "before", "after"
# What a pre-trigger reads. Nothing with triggers is written there, or an item would hold an item that holds an item.
GUARD = "c"
TIMEOUT_SECONDS = 30
# Refusals that tell for certain that nothing was written.
CERTAIN = (404, 409, 412)


def edits(step):
    """The operations of a recorded patch."""
    return [{"op": "set", "path": "/w", "value": step["w"]}, {"op": "incr", "path": "/n", "value": step["increment"]}]


def shown(step, status, item):
    """What the answer to a step shows."""
    kind = step["kind"]
    if kind == "delete":
        return {"kind": "deleted"}
    if kind == "read":
        return {"kind": "read", "item": item}
    return {"kind": "created" if status == 201 else "replaced", "item": item}


def refused(step, status):
    return {"refused": {"step": step, "status": status}} if status in CERTAIN else {"unknown": True}


def refused_by_script(operation, status, substatus, text):
    """The refusal that the error of a script tells."""
    failed = scripts.failed_step(text)
    if failed is None:
        return refused(operation["main"], status)
    owner, index = failed
    return refused(index + (operation["main"] + 1 if owner == "after" else 0), substatus)


def batch_steps(steps):
    """Recorded steps as those of a batch."""
    bodies = []
    for step in steps:
        body = {"operationType": step["kind"].capitalize()}
        if step["kind"] in ("replace", "delete", "read", "patch"):
            body["id"] = step["id"]
        if step["kind"] == "patch":
            body["resourceBody"] = {"operations": edits(step)}
        elif "body" in step:
            body["resourceBody"] = step["body"]
        if step.get("if_match"):
            body["ifMatch"] = step["if_match"]
        bodies.append(body)
    return bodies


def done(steps, items):
    """What the items that a script returns show."""
    pairs = zip(steps, items, strict=True)
    return {"done": [shown(step, 201 if step["kind"] == "create" else 200, item) for step, item in pairs]}


def done_with_triggers(operation, answer):
    """What a write with triggers shows: what was read before it, the written item, what was done after it."""
    steps, main = operation["steps"], operation["main"]
    item, after = (answer["item"], answer["items"]) if steps[main + 1:] else (answer, [])
    if main > 0:
        # The pre-trigger has added what it has read.
        steps[main]["body"]["seen"] = item["seen"]
    before = [item["seen"]] if main > 0 else []
    return done(steps, [*before, item, *after])


def triggers(operation):
    """The triggers of a write: before it and after it."""
    main = operation["main"]
    return PRE_TRIGGER if main > 0 else None, POST_TRIGGER if operation["steps"][main + 1:] else None


class RawClient:
    """By hand, over one kept connection."""

    def __init__(self, port, scheme):
        self.wire = Wire(port, secure=scheme == "https", timeout=TIMEOUT_SECONDS)
        self.path = f"/dbs/{DATABASE}/colls/{CONTAINER}"

    def send(self, key, operation):
        try:
            return getattr(self, operation["by"])(key, operation)
        except (OSError, EOFError, ValueError):
            return {"unknown": True}

    def single(self, key, operation):
        [step] = operation["steps"]
        answer = self._write(key, step)
        if answer.status >= 300:
            return refused(0, answer.status)
        return {"done": [shown(step, answer.status, answer.json if answer.body else None)]}

    def triggered(self, key, operation):
        before, after = triggers(operation)
        headers = {"x-ms-documentdb-pre-trigger-include": before} if before else {}
        headers |= {"x-ms-documentdb-post-trigger-include": after} if after else {}
        answer = self._write(key, operation["steps"][operation["main"]], headers)
        if answer.status >= 300:
            return refused_by_script(operation, answer.status, answer.substatus, answer.body.decode())
        return done_with_triggers(operation, answer.json)

    def _write(self, key, step, headers=None):
        kind = step["kind"]
        headers = {**(headers or {}), **({"If-Match": step["if_match"]} if step.get("if_match") else {})}
        if kind == "create":
            return self.wire.item("POST", self.path, [key], body=step["body"], headers=headers)
        verb = {"replace": "PUT", "patch": "PATCH", "delete": "DELETE", "read": "GET"}[kind]
        body = {"operations": edits(step)} if kind == "patch" else step.get("body")
        return self.wire.item(verb, self.path, [key], step["id"], body, headers)

    def procedure(self, key, operation):
        headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
        parameters = [batch_steps(operation["steps"])]
        answer = self.wire.send("POST", f"{self.path}/sprocs/{PROCEDURE}", parameters, headers)
        if answer.status != 200:
            return refused_by_script(operation, answer.status, answer.substatus, answer.body.decode())
        return done(operation["steps"], answer.json)

    def batch(self, key, operation):
        steps = operation["steps"]
        answer = self.wire.batch(self.path, [key], batch_steps(steps))
        if answer.status not in (200, 207):
            return {"unknown": True}
        results = answer.json
        for index, result in enumerate(results):
            if result["statusCode"] >= 300 and result["statusCode"] != 424:
                return refused(index, result["statusCode"])
        return {"done": [shown(step, result["statusCode"], result.get("resourceBody"))
                         for step, result in zip(steps, results)]}

    def close(self):
        self.wire.close()


class SdkClient:
    """Through the SDK. It repeats reads by itself, and writes only where the answer is certain."""

    def __init__(self, port, scheme):
        self.client = CosmosClient(f"{scheme}://127.0.0.1:{port}/", EMULATOR_KEY, connection_verify=False)
        self.container = self.client.get_database_client(DATABASE).get_container_client(CONTAINER)

    def send(self, key, operation):
        try:
            return getattr(self, operation["by"])(key, operation)
        except CosmosBatchOperationError as error:
            return refused(error.error_index, error.status_code)
        except CosmosHttpResponseError as error:
            return refused_by_script(operation, error.status_code, error.sub_status, error.message)
        except (AzureError, OSError):
            return {"unknown": True}

    def single(self, key, operation):
        [step] = operation["steps"]
        item = self._write(key, step)
        return {"done": [shown(step, 201 if step["kind"] == "create" else 200, item)]}

    def triggered(self, key, operation):
        before, after = triggers(operation)
        options = {"pre_trigger_include": before} if before else {}
        options |= {"post_trigger_include": after} if after else {}
        step = operation["steps"][operation["main"]]
        return done_with_triggers(operation, self._write(key, step, **options))

    def _write(self, key, step, **options):
        kind, id = step["kind"], step.get("id")
        if step.get("if_match"):
            options |= {"etag": step["if_match"], "match_condition": MatchConditions.IfNotModified}
        if kind == "create":
            return self.container.create_item(step["body"], **options)
        if kind == "replace":
            return self.container.replace_item(id, step["body"], **options)
        if kind == "patch":
            return self.container.patch_item(id, key, edits(step), **options)
        if kind == "delete":
            return self.container.delete_item(id, key, **options)
        return self.container.read_item(id, key)

    def procedure(self, key, operation):
        parameters = [batch_steps(operation["steps"])]
        items = self.container.scripts.execute_stored_procedure(PROCEDURE, key, parameters)
        return done(operation["steps"], items)

    def batch(self, key, operation):
        steps = operation["steps"]
        tuples = []
        for step in steps:
            kind = step["kind"]
            options = {"if_match_etag": step["if_match"]} if step.get("if_match") else {}
            arguments = {
                "create": (step.get("body"),), "replace": (step.get("id"), step.get("body")),
                "patch": (step.get("id"), edits(step) if kind == "patch" else None), "delete": (step.get("id"),),
                "read": (step.get("id"),),
            }[kind]
            tuples.append((kind, arguments, options))
        results = self.container.execute_item_batch(tuples, key)
        return {"done": [shown(step, result["statusCode"], result.get("resourceBody"))
                         for step, result in zip(steps, results)]}

    def close(self):
        self.client.close()
