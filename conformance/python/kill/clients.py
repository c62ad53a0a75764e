"""Two ways to send the same operation: by hand over one kept connection, and through the SDK.

Both answer with what the journal needs, raise `Refused` for an answer that says no, and `Unknown` for no answer.
"""

import json
from dataclasses import dataclass

from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from support.server import EMULATOR_KEY
from support.wire import Wire

DATABASE = "kill"
# The stored procedure that takes the steps of a batch.
PROCEDURE = "steps"
TIMEOUT_SECONDS = 15
# Answers that do not tell whether the write happened.
UNCERTAIN = (408, 500)


class Refused(Exception):
    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Unknown(Exception):
    pass


@dataclass
class Receipt:
    status: int
    range: str
    lsn: int
    etags: dict
    ts: int


def judged(status):
    if status in UNCERTAIN:
        raise Unknown(f"status {status}")
    if status >= 300 or status == 207:
        raise Refused(status)


def receipt(status, headers, items):
    """What the answer to a write tells; `items` are the items in its body."""
    headers = {name.lower(): value for name, value in headers.items()}
    range_id, token = headers["x-ms-session-token"].split(":")
    items = [item for item in items if item]  # a procedure answers `null` for a delete
    etags = {item["id"]: item["_etag"] for item in items}
    stamp = max((item["_ts"] for item in items), default=0)
    return Receipt(status, range_id, int(token.split("#")[1]), etags, stamp)


class RawClient:
    """By hand."""

    def __init__(self, port):
        self.wire = Wire(port, timeout=TIMEOUT_SECONDS)

    def send(self, operation):
        container = f"/dbs/{DATABASE}/colls/{operation['container']}"
        key = [operation["pk"]]
        kind = operation["kind"]
        headers = {"If-Match": operation["if_match"]} if operation.get("if_match") else {}
        try:
            if kind == "batch":
                answer = self.wire.batch(container, key, operation["steps"])
            elif kind == "procedure":
                headers = {"x-ms-documentdb-partitionkey": json.dumps(key)}
                body = [operation["steps"], operation["fails"]]
                answer = self.wire.send("POST", f"{container}/sprocs/{PROCEDURE}", body, headers)
            elif kind in ("create", "upsert"):
                headers |= {"x-ms-documentdb-is-upsert": "True"} if kind == "upsert" else {}
                answer = self.wire.item("POST", container, key, body=operation["body"], headers=headers)
            else:
                verb = {"replace": "PUT", "patch": "PATCH", "delete": "DELETE"}[kind]
                body = {"operations": operation["patch"]} if kind == "patch" else operation.get("body")
                answer = self.wire.item(verb, container, key, operation["id"], body, headers)
        except (OSError, EOFError) as error:
            raise Unknown(repr(error)) from None
        except Exception as error:  # http.client has a family of its own for broken answers
            raise Unknown(repr(error)) from None
        judged(answer.status)
        items = [] if not answer.body else answer.json
        if kind == "batch":
            items = [step["resourceBody"] for step in items if "resourceBody" in step]
        return receipt(answer.status, answer.headers, items if isinstance(items, list) else [items])

    def close(self):
        self.wire.close()


class SdkClient:
    """Through the SDK, which may repeat a request by itself: `is_over` tells that a refusal may be such an echo."""

    def __init__(self, port, scheme, is_over):
        self.is_over = is_over
        self.client = CosmosClient(
            f"{scheme}://127.0.0.1:{port}/", EMULATOR_KEY, connection_verify=False, read_timeout=TIMEOUT_SECONDS,
            retry_total=0, retry_connect=0, retry_read=0, retry_status=0)
        self.database = self.client.get_database_client(DATABASE)

    def send(self, operation):
        container = self.database.get_container_client(operation["container"])
        kind, key = operation["kind"], operation["pk"]
        seen = {}
        options = {"response_hook": lambda headers, _: seen.update(headers)}
        if operation.get("if_match"):
            options |= {"etag": operation["if_match"], "match_condition": MatchConditions.IfNotModified}
        try:
            if kind == "batch":
                steps = [_tuple(step) for step in operation["steps"]]
                answers = container.execute_item_batch(steps, key, **options)
                items = [answer["resourceBody"] for answer in answers if answer.get("resourceBody")]
            elif kind == "procedure":
                parameters = [operation["steps"], operation["fails"]]
                items = container.scripts.execute_stored_procedure(PROCEDURE, key, parameters)
                # This method of the SDK has no hook for the headers of its answer.
                seen.update(self.client.client_connection.last_response_headers)
            else:
                call, arguments = {
                    "create": (container.create_item, (operation.get("body"),)),
                    "upsert": (container.upsert_item, (operation.get("body"),)),
                    "replace": (container.replace_item, (operation["id"], operation.get("body"))),
                    "patch": (container.patch_item, (operation["id"], key, operation.get("patch"))),
                    "delete": (container.delete_item, (operation["id"], key)),
                }[kind]
                item = call(*arguments, **options)
                items = [] if item is None else [item]
        except (CosmosHttpResponseError, CosmosBatchOperationError) as error:
            if self.is_over():
                raise Unknown(repr(error)[:200]) from None
            judged(error.status_code)
            raise Unknown(f"status {error.status_code}") from None
        except (AzureError, OSError) as error:
            raise Unknown(repr(error)[:200]) from None
        return receipt(200, seen, items)

    def close(self):
        self.client.close()


def _tuple(step):
    """A step of a batch in the SDK's form."""
    kind = step["operationType"].lower()
    if kind in ("create", "upsert"):
        return (kind, (step["resourceBody"],))
    if kind == "replace":
        return (kind, (step["id"], step["resourceBody"]))
    return (kind, (step["id"],))
