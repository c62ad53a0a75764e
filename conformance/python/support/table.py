"""The Table service under test: our server, or Azurite at the address that `PERIHELION_TABLE_PEER` names.

Azurite stands for the real service. Where its answer differs from the documented one, a test names both with `answer`.
"""

import json
import os
import pathlib
import urllib.request

import pytest

from support.server import ROOT, Server

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PEER = os.environ.get("PERIHELION_TABLE_PEER", "").rstrip("/")
IS_AZURITE = bool(PEER)
SCHEMES = [PEER.split(":")[0]] if IS_AZURITE else ["http", "https"]
DATA = json.loads((ROOT / "conformance/table.json").read_text())


def answer(documented, azurite):
    """The expected answer."""
    return azurite if IS_AZURITE else documented


def azurite_lacks(what):
    """Ends a test that cannot pass against Azurite; it never ends one against our server."""
    if IS_AZURITE:
        pytest.skip(f"Azurite lacks {what}")


class Service:
    """What clients need to know of the service: its address for each scheme, and whom to trust."""

    def __init__(self, folder):
        self.server = None if IS_AZURITE else Server(folder / "data", table=True)
        self.authority = True
        self.folder = folder

    def __enter__(self):
        if self.server:
            self.server.start()
            pem = urllib.request.urlopen(self.server.endpoint() + "_explorer/emulator.pem").read()
            self.authority = str(pathlib.Path(self.folder) / "authority.pem")
            pathlib.Path(self.authority).write_bytes(pem)
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.__exit__()

    @property
    def port(self):
        return self.server.table_port if self.server else int(PEER.rsplit(":", 1)[1])

    def endpoint(self, scheme="http", account=ACCOUNT):
        """The address of an account in path style."""
        return f"{scheme}://127.0.0.1:{self.port}/{account}"

    def connection_string(self, scheme="http", account=ACCOUNT, key=ACCOUNT_KEY):
        return (
            f"DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};"
            f"TableEndpoint={self.endpoint(scheme, account)};"
        )
