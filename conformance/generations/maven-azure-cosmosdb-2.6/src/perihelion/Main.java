package perihelion;

import static perihelion.Walk.check;
import static perihelion.Walk.data;
import static perihelion.Walk.plain;
import static perihelion.Walk.text;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.microsoft.azure.cosmosdb.AccessCondition;
import com.microsoft.azure.cosmosdb.AccessConditionType;
import com.microsoft.azure.cosmosdb.ConnectionMode;
import com.microsoft.azure.cosmosdb.ConnectionPolicy;
import com.microsoft.azure.cosmosdb.ConsistencyLevel;
import com.microsoft.azure.cosmosdb.Database;
import com.microsoft.azure.cosmosdb.DatabaseAccount;
import com.microsoft.azure.cosmosdb.Document;
import com.microsoft.azure.cosmosdb.DocumentClientException;
import com.microsoft.azure.cosmosdb.DocumentCollection;
import com.microsoft.azure.cosmosdb.FeedOptions;
import com.microsoft.azure.cosmosdb.FeedResponse;
import com.microsoft.azure.cosmosdb.Offer;
import com.microsoft.azure.cosmosdb.PartitionKey;
import com.microsoft.azure.cosmosdb.PartitionKeyDefinition;
import com.microsoft.azure.cosmosdb.RequestOptions;
import com.microsoft.azure.cosmosdb.Resource;
import com.microsoft.azure.cosmosdb.ResourceResponse;
import com.microsoft.azure.cosmosdb.SqlParameter;
import com.microsoft.azure.cosmosdb.SqlParameterCollection;
import com.microsoft.azure.cosmosdb.SqlQuerySpec;
import com.microsoft.azure.cosmosdb.internal.HttpConstants;
import com.microsoft.azure.cosmosdb.rx.AsyncDocumentClient;
import java.util.ArrayList;
import java.util.List;
import rx.Observable;

/** `azure-cosmosdb` 2.x, the asynchronous Java client of 2018 to 2020: links, and observables of RxJava. */
public final class Main {
    private static final String DATABASE = "azure-cosmosdb";
    private static final String DATABASE_LINK = "/dbs/" + DATABASE;
    private static final String CONTAINER_LINK = DATABASE_LINK + "/colls/" + text(data("container"), "id");

    private final AsyncDocumentClient client;

    private Main(AsyncDocumentClient client) {
        this.client = client;
    }

    public static void main(String[] arguments) {
        Walk.through("azure-cosmosdb", HttpConstants.Versions.CURRENT_VERSION, () -> {
            ConnectionPolicy policy = ConnectionPolicy.GetDefault();
            policy.setConnectionMode(ConnectionMode.Gateway);
            AsyncDocumentClient client = new AsyncDocumentClient.Builder()
                    .withServiceEndpoint(Walk.endpoint())
                    .withMasterKeyOrResourceToken(Walk.KEY)
                    .withConnectionPolicy(policy)
                    .withConsistencyLevel(ConsistencyLevel.Session)
                    .build();
            new Main(client).through();
        });
    }

    private void through() {
        DatabaseAccount account = client.getDatabaseAccount().toBlocking().single();
        check("read account", account.getMaxMediaStorageUsageInMB() >= 0, true);
        catalog();
        items();
        for (JsonNode query : Walk.DATA.get("queries")) {
            Walk.checkQuery(query, rows(all(query(query, new FeedOptions()))));
        }
        pages();
        replace();
        delete();
        offers();
        drop();
    }

    private static void refused(String name, int status, Walk.Through call) {
        // Blocking calls wrap the client's checked exception.
        Walk.refused(name, status, error -> {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause instanceof DocumentClientException known ? known.getStatusCode() : 0;
        }, call);
    }

    private void catalog() {
        Database wanted = new Database();
        wanted.setId(DATABASE);
        check("create database", one(client.createDatabase(wanted, null)).getId(), DATABASE);
        refused("create database twice", 409, () -> one(client.createDatabase(wanted, null)));
        List<Database> databases = all(client.readDatabases(null));
        check("list databases", databases.stream().anyMatch(found -> found.getId().equals(DATABASE)), true);
        String path = text(data("container"), "partitionKey");
        DocumentCollection definition = new DocumentCollection();
        definition.setId(text(data("container"), "id"));
        PartitionKeyDefinition key = new PartitionKeyDefinition();
        key.setPaths(List.of(path));
        definition.setPartitionKey(key);
        RequestOptions options = new RequestOptions();
        options.setOfferThroughput(data("container").get("throughput").asInt());
        DocumentCollection made = one(client.createCollection(DATABASE_LINK, definition, options));
        check("create container", made.getId(), definition.getId());
        DocumentCollection read = one(client.readCollection(CONTAINER_LINK, null));
        check("read container", List.copyOf(read.getPartitionKey().getPaths()), List.of(path));
        List<DocumentCollection> listed = all(client.readCollections(DATABASE_LINK, null));
        check("list containers", listed.stream().map(DocumentCollection::getId).toList(), List.of(definition.getId()));
    }

    private void items() {
        List<JsonNode> made = new ArrayList<>();
        for (JsonNode item : Walk.documents()) {
            made.add(plain(row(one(client.createDocument(CONTAINER_LINK, document(item), null, true)))));
        }
        check("create items", made, Walk.documents());
        Document again = document(data("read"));
        refused("create item twice", 409, () -> one(client.createDocument(CONTAINER_LINK, again, null, true)));
        check("read item", plain(row(read(data("read")))), data("read"));
        refused("read absent item", 404, () -> read(data("absent")));
    }

    private Document read(JsonNode item) {
        return one(client.readDocument(link(item), of(item)));
    }

    private Observable<FeedResponse<Document>> query(JsonNode query, FeedOptions options) {
        if (query.get("key").isNull()) {
            options.setEnableCrossPartitionQuery(true);
        } else {
            options.setPartitionKey(new PartitionKey(text(query, "key")));
        }
        SqlParameterCollection parameters = new SqlParameterCollection();
        for (JsonNode parameter : query.path("parameters")) {
            JsonNode value = parameter.get("value");
            Object plain = value.isNumber() ? value.numberValue() : value.asText();
            parameters.add(new SqlParameter(text(parameter, "name"), plain));
        }
        return client.queryDocuments(CONTAINER_LINK, new SqlQuerySpec(text(query, "text"), parameters), options);
    }

    private void pages() {
        List<JsonNode> feed = rows(all(client.readDocuments(CONTAINER_LINK, crossing())));
        Walk.checkInAnyOrder("read feed", feed.stream().map(Walk::plain).toList(), Walk.DATA.get("documents"));
        JsonNode wanted = data("feedPages");
        FeedOptions options = crossing();
        options.setMaxItemCount(wanted.get("size").asInt());
        List<List<JsonNode>> pages = new ArrayList<>();
        for (FeedResponse<Document> page : client.readDocuments(CONTAINER_LINK, options).toBlocking().toIterable()) {
            pages.add(rows(page.getResults()).stream().map(item -> item.get("id")).toList());
        }
        Walk.checkPages("feed in pages", pages, wanted);
        wanted = data("queryPages");
        Walk.checkPages("query in pages", resumed(wanted), wanted);
    }

    private static FeedOptions crossing() {
        FeedOptions options = new FeedOptions();
        options.setEnableCrossPartitionQuery(true);
        return options;
    }

    /** Each page by a query of its own that resumes with the continuation of the last. */
    private List<List<JsonNode>> resumed(JsonNode wanted) {
        List<List<JsonNode>> pages = new ArrayList<>();
        String continuation = null;
        for (int count = 0; count < Walk.PAGES_MAX; count += 1) {
            FeedOptions options = new FeedOptions();
            options.setMaxItemCount(wanted.get("size").asInt());
            options.setRequestContinuation(continuation);
            FeedResponse<Document> page = query(wanted, options).toBlocking().first();
            pages.add(rows(page.getResults()));
            continuation = page.getResponseContinuation();
            if (continuation == null) {
                break;
            }
        }
        return pages;
    }

    private Document replace(JsonNode item, String etag) {
        RequestOptions options = of(item);
        if (etag != null) {
            AccessCondition condition = new AccessCondition();
            condition.setType(AccessConditionType.IfMatch);
            condition.setCondition(etag);
            options.setAccessCondition(condition);
        }
        return one(client.replaceDocument(link(item), document(item), options));
    }

    private void replace() {
        String before = read(data("read")).getETag();
        Document replaced = replace(data("replaced"), null);
        check("replace item", plain(row(replaced)), data("replaced"));
        JsonNode wanted = data("replacedOnCondition");
        check("conditional replace", plain(row(replace(wanted, replaced.getETag()))), wanted);
        refused("conditional replace of an old version", 412, () -> replace(data("replaced"), before));
        check("read replaced item", plain(row(read(wanted))), wanted);
        refused("replace absent item", 404, () -> replace(data("absent"), null));
        Document upserted = document(data("upserted"));
        Document made = one(client.upsertDocument(CONTAINER_LINK, upserted, null, true));
        check("upsert item", plain(row(made)), data("upserted"));
    }

    private void delete() {
        JsonNode deleted = data("deleted");
        one(client.deleteDocument(link(deleted), of(deleted)));
        refused("delete item", 404, () -> read(deleted));
        refused("delete absent item", 404, () -> one(client.deleteDocument(link(deleted), of(deleted))));
    }

    private void offers() {
        String link = one(client.readCollection(CONTAINER_LINK, null)).getSelfLink();
        SqlParameterCollection parameters = new SqlParameterCollection(new SqlParameter("@link", link));
        SqlQuerySpec query = new SqlQuerySpec("SELECT * FROM root r WHERE r.resource = @link", parameters);
        Offer offer = all(client.queryOffers(query, null)).get(0);
        check("read offer", offer.getThroughput(), data("container").get("throughput"));
        offer.setThroughput(data("container").get("throughputReplaced").asInt());
        one(client.replaceOffer(offer));
        Offer read = one(client.readOffer(offer.getSelfLink()));
        check("replace offer", read.getThroughput(), data("container").get("throughputReplaced"));
    }

    private void drop() {
        one(client.deleteCollection(CONTAINER_LINK, null));
        refused("delete container", 404, () -> one(client.readCollection(CONTAINER_LINK, null)));
        one(client.deleteDatabase(DATABASE_LINK, null));
        refused("delete database", 404, () -> one(client.readDatabase(DATABASE_LINK, null)));
    }

    private static <T extends Resource> T one(Observable<ResourceResponse<T>> response) {
        return response.toBlocking().single().getResource();
    }

    private static <T extends Resource> List<T> all(Observable<FeedResponse<T>> pages) {
        List<T> found = new ArrayList<>();
        pages.toBlocking().forEach(page -> found.addAll(page.getResults()));
        return found;
    }

    private static String link(JsonNode item) {
        return CONTAINER_LINK + "/docs/" + text(item, "id");
    }

    private static RequestOptions of(JsonNode item) {
        RequestOptions options = new RequestOptions();
        options.setPartitionKey(new PartitionKey(text(item, "device")));
        return options;
    }

    private static Document document(JsonNode item) {
        return new Document(item.toString());
    }

    private static List<JsonNode> rows(List<Document> documents) {
        return documents.stream().map(Main::row).toList();
    }

    /** A row; the client wraps aggregates, which are not documents. */
    private static JsonNode row(Document document) {
        try {
            JsonNode row = Walk.MAPPER.readTree(document.toJson());
            return row.has("_aggregate") ? row.get("_aggregate") : row;
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }
}
