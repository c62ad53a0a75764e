package perihelion;

import static perihelion.Walk.check;
import static perihelion.Walk.data;
import static perihelion.Walk.plain;
import static perihelion.Walk.text;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.microsoft.azure.documentdb.AccessCondition;
import com.microsoft.azure.documentdb.AccessConditionType;
import com.microsoft.azure.documentdb.ConnectionMode;
import com.microsoft.azure.documentdb.ConnectionPolicy;
import com.microsoft.azure.documentdb.ConsistencyLevel;
import com.microsoft.azure.documentdb.Database;
import com.microsoft.azure.documentdb.Document;
import com.microsoft.azure.documentdb.DocumentClient;
import com.microsoft.azure.documentdb.DocumentClientException;
import com.microsoft.azure.documentdb.DocumentCollection;
import com.microsoft.azure.documentdb.FeedOptions;
import com.microsoft.azure.documentdb.FeedResponse;
import com.microsoft.azure.documentdb.Offer;
import com.microsoft.azure.documentdb.PartitionKey;
import com.microsoft.azure.documentdb.PartitionKeyDefinition;
import com.microsoft.azure.documentdb.QueryIterable;
import com.microsoft.azure.documentdb.RequestOptions;
import com.microsoft.azure.documentdb.SqlParameter;
import com.microsoft.azure.documentdb.SqlParameterCollection;
import com.microsoft.azure.documentdb.SqlQuerySpec;
import com.microsoft.azure.documentdb.internal.HttpConstants;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.json.JSONObject;

/** `azure-documentdb`, the synchronous Java client of 2015 to 2022: links, and documents of `org.json`. */
public final class Main {
    private static final String DATABASE = "azure-documentdb";
    private static final String DATABASE_LINK = "/dbs/" + DATABASE;
    private static final String CONTAINER_LINK = DATABASE_LINK + "/colls/" + text(data("container"), "id");

    private final DocumentClient client;

    private Main(DocumentClient client) {
        this.client = client;
    }

    public static void main(String[] arguments) {
        Walk.through("azure-documentdb", HttpConstants.Versions.CURRENT_VERSION, () -> {
            ConnectionPolicy policy = ConnectionPolicy.GetDefault();
            policy.setConnectionMode(ConnectionMode.Gateway);
            new Main(new DocumentClient(Walk.endpoint(), Walk.KEY, policy, ConsistencyLevel.Session)).through();
        });
    }

    private void through() throws DocumentClientException {
        check("read account", client.getDatabaseAccount().getMaxMediaStorageUsageInMB() >= 0, true);
        catalog();
        items();
        for (JsonNode query : Walk.DATA.get("queries")) {
            Walk.checkQuery(query, rows(query(query, new FeedOptions()).getQueryIterable().toList()));
        }
        pages();
        replace();
        delete();
        offers();
        drop();
    }

    private static void refused(String name, int status, Walk.Through call) {
        ToIntFunction<Throwable> statusOf =
                error -> error instanceof DocumentClientException known ? known.getStatusCode() : 0;
        Walk.refused(name, status, statusOf, call);
    }

    private void catalog() throws DocumentClientException {
        Database wanted = new Database();
        wanted.setId(DATABASE);
        check("create database", client.createDatabase(wanted, null).getResource().getId(), DATABASE);
        refused("create database twice", 409, () -> client.createDatabase(wanted, null));
        List<Database> databases = client.readDatabases(null).getQueryIterable().toList();
        check("list databases", databases.stream().anyMatch(found -> found.getId().equals(DATABASE)), true);
        String path = text(data("container"), "partitionKey");
        DocumentCollection definition = new DocumentCollection();
        definition.setId(text(data("container"), "id"));
        PartitionKeyDefinition key = new PartitionKeyDefinition();
        key.setPaths(List.of(path));
        definition.setPartitionKey(key);
        RequestOptions options = new RequestOptions();
        options.setOfferThroughput(data("container").get("throughput").asInt());
        DocumentCollection made = client.createCollection(DATABASE_LINK, definition, options).getResource();
        check("create container", made.getId(), definition.getId());
        DocumentCollection read = client.readCollection(CONTAINER_LINK, null).getResource();
        check("read container", List.copyOf(read.getPartitionKey().getPaths()), List.of(path));
        List<DocumentCollection> listed = client.readCollections(DATABASE_LINK, null).getQueryIterable().toList();
        check("list containers", listed.stream().map(DocumentCollection::getId).toList(), List.of(definition.getId()));
    }

    private void items() throws DocumentClientException {
        List<JsonNode> made = new ArrayList<>();
        for (JsonNode item : Walk.documents()) {
            made.add(plain(row(client.createDocument(CONTAINER_LINK, document(item), null, true).getResource())));
        }
        check("create items", made, Walk.documents());
        Document again = document(data("read"));
        refused("create item twice", 409, () -> client.createDocument(CONTAINER_LINK, again, null, true));
        check("read item", plain(row(read(data("read")))), data("read"));
        refused("read absent item", 404, () -> read(data("absent")));
    }

    private Document read(JsonNode item) throws DocumentClientException {
        return client.readDocument(link(item), of(item)).getResource();
    }

    private FeedResponse<Document> query(JsonNode query, FeedOptions options) {
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

    private void pages() throws DocumentClientException {
        List<JsonNode> feed = rows(client.readDocuments(CONTAINER_LINK, crossing()).getQueryIterable().toList());
        Walk.checkInAnyOrder("read feed", feed.stream().map(Walk::plain).toList(), Walk.DATA.get("documents"));
        JsonNode wanted = data("feedPages");
        FeedOptions options = crossing();
        options.setPageSize(wanted.get("size").asInt());
        List<List<JsonNode>> pages = new ArrayList<>();
        QueryIterable<Document> blocks = client.readDocuments(CONTAINER_LINK, options).getQueryIterable();
        for (int count = 0; count < Walk.PAGES_MAX; count += 1) {
            List<Document> block = blocks.fetchNextBlock();
            if (block == null || block.isEmpty()) {
                break;
            }
            pages.add(rows(block).stream().map(item -> item.get("id")).toList());
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
    private List<List<JsonNode>> resumed(JsonNode wanted) throws DocumentClientException {
        List<List<JsonNode>> pages = new ArrayList<>();
        String continuation = null;
        for (int count = 0; count < Walk.PAGES_MAX; count += 1) {
            FeedOptions options = new FeedOptions();
            options.setPageSize(wanted.get("size").asInt());
            options.setRequestContinuation(continuation);
            FeedResponse<Document> page = query(wanted, options);
            // In this order: once a page is taken, the client fetches the next one to answer the question.
            continuation = page.getResponseContinuation();
            pages.add(rows(page.getQueryIterable().fetchNextBlock()));
            if (continuation == null) {
                break;
            }
        }
        return pages;
    }

    private Document replace(JsonNode item, String etag) throws DocumentClientException {
        RequestOptions options = of(item);
        if (etag != null) {
            AccessCondition condition = new AccessCondition();
            condition.setType(AccessConditionType.IfMatch);
            condition.setCondition(etag);
            options.setAccessCondition(condition);
        }
        return client.replaceDocument(link(item), document(item), options).getResource();
    }

    private void replace() throws DocumentClientException {
        String before = read(data("read")).getETag();
        Document replaced = replace(data("replaced"), null);
        check("replace item", plain(row(replaced)), data("replaced"));
        JsonNode wanted = data("replacedOnCondition");
        check("conditional replace", plain(row(replace(wanted, replaced.getETag()))), wanted);
        refused("conditional replace of an old version", 412, () -> replace(data("replaced"), before));
        check("read replaced item", plain(row(read(wanted))), wanted);
        refused("replace absent item", 404, () -> replace(data("absent"), null));
        Document upserted = document(data("upserted"));
        Document made = client.upsertDocument(CONTAINER_LINK, upserted, null, true).getResource();
        check("upsert item", plain(row(made)), data("upserted"));
    }

    private void delete() throws DocumentClientException {
        JsonNode deleted = data("deleted");
        client.deleteDocument(link(deleted), of(deleted));
        refused("delete item", 404, () -> read(deleted));
        refused("delete absent item", 404, () -> client.deleteDocument(link(deleted), of(deleted)));
    }

    private void offers() throws DocumentClientException {
        String link = client.readCollection(CONTAINER_LINK, null).getResource().getSelfLink();
        SqlParameterCollection parameters = new SqlParameterCollection(new SqlParameter("@link", link));
        SqlQuerySpec query = new SqlQuerySpec("SELECT * FROM root r WHERE r.resource = @link", parameters);
        Offer offer = client.queryOffers(query, null).getQueryIterable().toList().get(0);
        check("read offer", offer.getContent().getInt("offerThroughput"), data("container").get("throughput"));
        JSONObject content = offer.getContent();
        content.put("offerThroughput", data("container").get("throughputReplaced").asInt());
        offer.setContent(content);
        client.replaceOffer(offer);
        int read = client.readOffer(offer.getSelfLink()).getResource().getContent().getInt("offerThroughput");
        check("replace offer", read, data("container").get("throughputReplaced"));
    }

    private void drop() throws DocumentClientException {
        client.deleteCollection(CONTAINER_LINK, null);
        refused("delete container", 404, () -> client.readCollection(CONTAINER_LINK, null));
        client.deleteDatabase(DATABASE_LINK, null);
        refused("delete database", 404, () -> client.readDatabase(DATABASE_LINK, null));
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
