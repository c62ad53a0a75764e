"""`azure-cosmos` 3.x, the Python client of 2018 to 2020."""

import importlib.metadata

import azure.cosmos.cosmos_client
import azure.cosmos.http_constants
import link_walk
import walk

VERSION = importlib.metadata.version("azure-cosmos")
walk.report("azure-cosmos", VERSION, azure.cosmos.http_constants.Versions.CurrentVersion)
for database, endpoint in [("slash", walk.endpoint()), ("no-slash", walk.endpoint().rstrip("/"))]:
    client = azure.cosmos.cosmos_client.CosmosClient(endpoint, {"masterKey": walk.KEY})
    link_walk.Walk(client, f"azure-cosmos-{VERSION}-{database}", nouns=("Item", "Container")).run()
walk.finish()
