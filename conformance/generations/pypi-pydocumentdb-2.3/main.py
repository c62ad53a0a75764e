"""`pydocumentdb`, the Python client of 2017 and 2018."""

import importlib.metadata

import link_walk
import pydocumentdb.document_client
import pydocumentdb.http_constants
import walk

VERSION = importlib.metadata.version("pydocumentdb")
walk.report("pydocumentdb", VERSION, pydocumentdb.http_constants.Versions.CurrentVersion)
for database, endpoint in [("slash", walk.endpoint()), ("no-slash", walk.endpoint().rstrip("/"))]:
    client = pydocumentdb.document_client.DocumentClient(endpoint, {"masterKey": walk.KEY})
    link_walk.Walk(client, f"pydocumentdb-{database}", nouns=("Document", "Collection")).run()
walk.finish()
