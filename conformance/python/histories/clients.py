"""Two kinds of clients that carry out one recorded operation: by hand and through the SDK.

Both answer in the words of the judge's file: `done`, `refused` or `unknown`.
"""

from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from support.server import EMULATOR_KEY
from support.wire import Wire

DATABASE = "histories"
CONTAINER = "c"
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


class RawClient:
    """By hand, over one kept connection."""

    def __init__(self, port, scheme):
        self.wire = Wire(port, secure=scheme == "https", timeout=TIMEOUT_SECONDS)
        self.path = f"/dbs/{DATABASE}/colls/{CONTAINER}"

    def send(self, key, steps):
        try:
            return self._batch(key, steps) if len(steps) > 1 else self._single(key, steps[0])
        except (OSError, EOFError, ValueError):
            return {"unknown": True}

    def _single(self, key, step):
        kind = step["kind"]
        headers = {"If-Match": step["if_match"]} if step.get("if_match") else {}
        if kind == "create":
            answer = self.wire.item("POST", self.path, [key], body=step["body"], headers=headers)
        else:
            verb = {"replace": "PUT", "patch": "PATCH", "delete": "DELETE", "read": "GET"}[kind]
            body = {"operations": edits(step)} if kind == "patch" else step.get("body")
            answer = self.wire.item(verb, self.path, [key], step["id"], body, headers)
        if answer.status >= 300:
            return refused(0, answer.status)
        return {"done": [shown(step, answer.status, answer.json if answer.body else None)]}

    def _batch(self, key, steps):
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
        answer = self.wire.batch(self.path, [key], bodies)
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

    def send(self, key, steps):
        try:
            return self._batch(key, steps) if len(steps) > 1 else self._single(key, steps[0])
        except CosmosBatchOperationError as error:
            return refused(error.error_index, error.status_code)
        except CosmosHttpResponseError as error:
            return refused(0, error.status_code)
        except (AzureError, OSError):
            return {"unknown": True}

    def _single(self, key, step):
        kind, id = step["kind"], step.get("id")
        condition = {"etag": step["if_match"], "match_condition": MatchConditions.IfNotModified} if step.get("if_match") else {}
        container = self.container
        item, status = None, 200
        if kind == "create":
            item, status = container.create_item(step["body"]), 201
        elif kind == "replace":
            item = container.replace_item(id, step["body"], **condition)
        elif kind == "patch":
            item = container.patch_item(id, key, edits(step), **condition)
        elif kind == "delete":
            container.delete_item(id, key, **condition)
        else:
            item = container.read_item(id, key)
        return {"done": [shown(step, status, item)]}

    def _batch(self, key, steps):
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
