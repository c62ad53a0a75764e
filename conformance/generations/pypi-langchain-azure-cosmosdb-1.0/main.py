"""LangChain's vector store for Azure Cosmos DB: vector, full-text and hybrid searches with a fake embedding."""

import importlib.metadata

import walk
from azure.cosmos import CosmosClient, PartitionKey, http_constants
from langchain_azure_cosmosdb import AzureCosmosDBNoSqlVectorSearch
from langchain_core.embeddings import Embeddings

DATA = walk.DATA["vectors"]
DATABASE = "langchain"


class KnownEmbedding(Embeddings):
    """The vectors of the known texts. A real embedding would need a model."""

    vectors = {known["text"]: known["vector"] for known in [*DATA["texts"], DATA["query"]]}

    def embed_documents(self, texts):
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        return self.vectors[text]


def open_store(client):
    embedding = {"path": "/embedding", "dataType": "float32", "distanceFunction": "cosine", "dimensions": 3}
    return AzureCosmosDBNoSqlVectorSearch(
        cosmos_client=client,
        embedding=KnownEmbedding(),
        database_name=DATABASE,
        container_name="texts",
        vector_embedding_policy={"vectorEmbeddings": [embedding]},
        full_text_policy={"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
        indexing_policy={
            "indexingMode": "consistent",
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": '/"_etag"/?'}],
            "vectorIndexes": [{"path": "/embedding", "type": "flat"}],
            "fullTextIndexes": [{"path": "/text"}],
        },
        cosmos_container_properties={"partition_key": PartitionKey(path="/id"), "offer_throughput": 12000},
        cosmos_database_properties={},
        vector_search_fields={"text_field": "text", "embedding_field": "embedding"},
        full_text_search_enabled=True,
    )


def ids(documents):
    return [document.metadata["id"] for document in documents]


def search(store, k=4, **options):
    return store.similarity_search(DATA["query"]["text"], k=k, **options)


def terms(wanted):
    return [{"search_field": "text", "search_text": wanted["terms"]}]


def searches(store):
    scored = store.similarity_search_with_score(DATA["query"]["text"], k=len(DATA["nearest"]))
    nearest = [[document.metadata["id"], round(score, 6)] for document, score in scored]
    walk.check("nearest texts with scores", nearest, DATA["nearest"])
    wanted = DATA["aboveThreshold"]
    found = search(store, search_type="vector_score_threshold", threshold=wanted["threshold"])
    walk.check("nearest texts above a threshold", ids(found), wanted["expected"])
    wanted = DATA["filtered"]
    walk.check("nearest texts with a filter", ids(search(store, where=wanted["where"])), wanted["expected"])
    wanted = DATA["page"]
    walk.check("a page of texts", ids(search(store, offset_limit=wanted["offsetLimit"])), wanted["expected"])
    wanted = DATA["fullText"]
    found = search(store, search_type="full_text_search", where=wanted["where"])
    walk.check_in_any_order("full-text search", ids(found), wanted["expected"])
    wanted = DATA["ranked"]
    found = search(store, wanted["size"], search_type="full_text_ranking", full_text_rank_filter=terms(wanted))
    walk.check("full-text ranking", ids(found), wanted["expected"])
    wanted = DATA["hybrid"]
    found = search(store, wanted["size"], search_type="hybrid", full_text_rank_filter=terms(wanted))
    walk.check("hybrid search", ids(found), wanted["expected"])
    wanted = DATA["diverse"]
    query = DATA["query"]["text"]
    found = store.max_marginal_relevance_search(query, k=wanted["size"], fetch_k=wanted["fetched"], lambda_mult=0.1)
    walk.check("diverse texts", ids(found), wanted["expected"])
    found = store.as_retriever(search_type="vector", k=1).invoke(query)
    walk.check("retriever", ids(found), [DATA["nearest"][0][0]])


def main():
    package = "langchain-azure-cosmosdb"
    walk.report(package, importlib.metadata.version(package), http_constants.Versions.CurrentVersion)
    client = CosmosClient(walk.endpoint(), credential=walk.KEY)
    store = open_store(client)
    texts = DATA["texts"]
    names = [known["id"] for known in texts]
    metadata = [{"city": known["city"]} for known in texts]
    added = store.add_texts([known["text"] for known in texts], metadatas=metadata, ids=names)
    walk.check("add texts", added, names)
    stored = store.get_container().read_item(names[0], partition_key=names[0])
    walk.check("stored text", (stored["text"], stored["embedding"]), (texts[0]["text"], texts[0]["vector"]))
    walk.check("open the store again", open_store(client).get_container().id, store.get_container().id)
    searches(store)
    deleted = DATA["deleted"]
    store.delete([deleted["id"]])
    walk.check("delete text", ids(search(store, 1)), [deleted["nearest"]])
    absent = lambda: store.delete([deleted["id"]])
    status_of = lambda error: getattr(error, "status_code", None)
    walk.check_refused("delete absent text", 404, status_of, absent)
    client.delete_database(DATABASE)
    walk.finish()


main()
