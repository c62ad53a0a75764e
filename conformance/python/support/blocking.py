"""The asyncio client behind the face of the other one, so that one suite runs on both.

Every call runs on one event loop in a thread of its own; proxies that a call returns are wrapped in the same way.
"""

import asyncio
import inspect
import threading

from azure.core.async_paging import AsyncItemPaged, AsyncPageIterator
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy, ScriptsProxy, UserProxy
from azure.data.tables.aio import TableClient, TableServiceClient

_PROXIES = (ContainerProxy, DatabaseProxy, CosmosClient, ScriptsProxy, UserProxy, TableClient, TableServiceClient)


class Loop:
    """An event loop that others can wait on."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def wait(self, awaitable):
        return asyncio.run_coroutine_threadsafe(_await(awaitable), self.loop).result()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


async def _await(awaitable):
    return await awaitable


class Blocking:
    """Stands in front of one asyncio object."""

    def __init__(self, inner, loop):
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        if not callable(value):
            return _wrapped(value, self._loop)

        def call(*arguments, **options):
            arguments = [_bare(argument) for argument in arguments]
            options = {key: _bare(option) for key, option in options.items()}
            return _wrapped(self._loop.wait(_called(value, arguments, options)), self._loop)

        return call


async def _called(function, arguments, options):
    result = function(*arguments, **options)
    return await result if inspect.isawaitable(result) else result


class _Pages:
    """An asyncio iterator, of items or of pages, as an ordinary one."""

    def __init__(self, inner, loop):
        self._inner = inner
        self._loop = loop

    def by_page(self, continuation_token=None):
        return _Pages(self._inner.by_page(continuation_token), self._loop)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            value = self._loop.wait(self._inner.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        return _Pages(value, self._loop) if hasattr(value, "__anext__") else value


def _bare(value):
    return value._inner if isinstance(value, Blocking) else value


def _wrapped(value, loop):
    if isinstance(value, _PROXIES):
        return Blocking(value, loop)
    if isinstance(value, (AsyncItemPaged, AsyncPageIterator)) or hasattr(value, "__anext__"):
        return _Pages(value, loop)
    if isinstance(value, tuple):
        return tuple(_wrapped(part, loop) for part in value)
    return value
