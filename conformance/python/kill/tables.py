"""Tables: the same operations through the official client of the Table API, and its entities as items.

The API tells no LSN; an ETag is the time of a version, and the place of a write is its PartitionKey.
"""

import re

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableServiceClient, TableTransactionError, UpdateMode

from kill.clients import TIMEOUT_SECONDS, Receipt, Unknown, judged
from support.table import ACCOUNT, ACCOUNT_KEY

TABLE = "entities"
# The property of an item whose name is another one in an entity.
KEYS = {"pk": "PartitionKey", "id": "RowKey"}


def service(port):
    """A client that sends every request once."""
    credential = AzureNamedKeyCredential(ACCOUNT, ACCOUNT_KEY)
    # The client guesses a secondary address that has the account twice if the account is in the path.
    return TableServiceClient(
        f"http://127.0.0.1:{port}/{ACCOUNT}", credential=credential, secondary_hostname=f"127.0.0.1:{port}",
        retry_total=0, read_timeout=TIMEOUT_SECONDS, connection_timeout=TIMEOUT_SECONDS)


def entity(item):
    return {KEYS.get(name, name): value for name, value in item.items()}


def item(found):
    """An entity as an item of the judge."""
    names = {entity: item for item, entity in KEYS.items()}
    body = {names.get(name, name): value for name, value in found.items()}
    return {**body, "_etag": found.metadata["etag"], "_ts": time_of(found.metadata["etag"])}


def time_of(etag):
    """The time in an ETag as a number that grows with it."""
    return int("".join(re.findall(r"\d+", etag.replace("%3A", ":"))))


def read_table(port):
    """All entities, as items by key."""
    observed = {}
    with service(port) as client:
        for found in client.get_table_client(TABLE).list_entities():
            one = item(found)
            key = (TABLE, one["pk"], one["id"])
            if key in observed:
                raise RuntimeError(f"{key} is in the table twice")
            observed[key] = one
    return observed


class TableSdkClient:
    """Through the SDK of tables; answers as the other clients do."""

    def __init__(self, port, is_over):
        self.is_over = is_over
        self.service = service(port)
        self.table = self.service.get_table_client(TABLE)

    def send(self, operation):
        kind, pk, id = operation["kind"], operation["pk"], operation.get("id")
        try:
            if kind == "batch":
                answers = self.table.submit_transaction([_step(pk, step) for step in operation["steps"]])
                ids = [step["id"] if "id" in step else step["resourceBody"]["id"] for step in operation["steps"]]
                etags = {id: answer["etag"] for id, answer in zip(ids, answers, strict=True) if answer.get("etag")}
            else:
                answer = self._single(kind, operation)
                etags = {id: answer["etag"]} if answer else {}
        except (TableTransactionError, HttpResponseError) as error:
            if self.is_over() or error.status_code is None:
                raise Unknown(repr(error)[:200]) from None
            judged(error.status_code)
            raise Unknown(f"status {error.status_code}") from None
        except (AzureError, OSError) as error:
            raise Unknown(repr(error)[:200]) from None
        return Receipt(200, pk, 0, etags, max(map(time_of, etags.values()), default=0))

    def _single(self, kind, operation):
        if kind == "delete":
            return self.table.delete_entity(operation["pk"], operation["id"])
        body = entity(operation["body"])
        if kind == "create":
            return self.table.create_entity(body)
        if kind == "upsert":
            return self.table.upsert_entity(body, mode=UpdateMode.REPLACE)
        if kind == "patch":
            changed = {name: body[name] for name in ("PartitionKey", "RowKey", "op", "n")}
            return self.table.update_entity(changed, mode=UpdateMode.MERGE)
        return self.table.update_entity(
            body, mode=UpdateMode.REPLACE, etag=operation["if_match"], match_condition=MatchConditions.IfNotModified)

    def close(self):
        self.service.close()


def _step(pk, step):
    """A step of a batch in the SDK's form."""
    kind = step["operationType"].lower()
    if kind == "delete":
        return ("delete", {"PartitionKey": pk, "RowKey": step["id"]})
    options = {} if kind == "create" else {"mode": UpdateMode.REPLACE}
    return ({"replace": "update"}.get(kind, kind), entity(step["resourceBody"]), options)
