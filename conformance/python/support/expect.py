"""Small words for assertions."""

import time

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

SYSTEM = ("_rid", "_self", "_etag", "_ts", "_attachments")


def status_of(call, *arguments, **options):
    """Status and substatus of a call that must be refused."""
    with pytest.raises(CosmosHttpResponseError) as raised:
        call(*arguments, **options)
    return raised.value.status_code, int(raised.value.sub_status or 0)


def message_of(call, *arguments, **options):
    """Status and text of a call that must be refused."""
    with pytest.raises(CosmosHttpResponseError) as raised:
        call(*arguments, **options)
    return raised.value.status_code, str(raised.value)


def plain(item):
    """The item without system properties."""
    return {name: value for name, value in item.items() if name not in SYSTEM}


def eventually(condition, seconds=20, pause=0.05):
    """Waits until the condition holds; the bound is only for a server that never gets there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(pause)
    raise AssertionError(f"not within {seconds} s")
