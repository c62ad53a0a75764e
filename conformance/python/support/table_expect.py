"""Small words for assertions about Table clients."""

import re

import pytest
from azure.core.exceptions import HttpResponseError


def refusal(error):
    """Status and code of an error of the client."""
    code = getattr(error, "error_code", None)
    if code is None:
        # The client reads the code in some of its operations only.
        found = re.search(r'"code":"(\w+)"|<Code>(\w+)</Code>', str(error))
        code = found and (found[1] or found[2])
    return error.status_code, getattr(code, "value", code)


def refused(call, *arguments, **options):
    """Status and code of a call that must be refused."""
    with pytest.raises(HttpResponseError) as raised:
        call(*arguments, **options)
    return refusal(raised.value)


def plain(entity):
    """An entity without what its keys and the service add."""
    return {name: value for name, value in entity.items() if name not in ("PartitionKey", "RowKey")}


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]
