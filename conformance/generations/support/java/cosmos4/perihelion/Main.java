package perihelion;

import static perihelion.Walk.check;
import static perihelion.Walk.data;
import static perihelion.Walk.plain;
import static perihelion.Walk.text;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.implementation.HttpConstants;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.util.CosmosPagedIterable;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/** The walk-through of `azure-cosmos` 4.x in gateway mode. */
public final class Main {
    private final CosmosClient client;
    private final CosmosDatabase database;
    private final CosmosContainer container;

    private Main(CosmosClient client, String databaseId) {
        this.client = client;
        database = client.getDatabase(databaseId);
        container = database.getContainer(text(data("container"), "id"));
    }

    public static void main(String[] arguments) {
        Walk.through("azure-cosmos", HttpConstants.Versions.CURRENT_VERSION, () -> {
            CosmosClient client =
                    new CosmosClientBuilder().endpoint(Walk.endpoint()).key(Walk.KEY).gatewayMode().buildClient();
            new Main(client, "azure-cosmos-java-" + Walk.version()).through();
        });
    }

    private void through() {
        catalog();
        items();
        for (JsonNode query : Walk.DATA.get("queries")) {
            List<JsonNode> rows = new ArrayList<>();
            rows(query).forEach(rows::add);
            Walk.checkQuery(query, rows);
        }
        pages();
        replace();
        delete();
        throughput();
        drop();
    }

    private static void refused(String name, int status, Walk.Through call) {
        Walk.refused(name, status, error -> error instanceof CosmosException known ? known.getStatusCode() : 0, call);
    }

    private void catalog() {
        check("create database", client.createDatabase(database.getId()).getProperties().getId(), database.getId());
        refused("create database twice", 409, () -> client.createDatabase(database.getId()));
        boolean isListed = client.readAllDatabases().stream().anyMatch(found -> found.getId().equals(database.getId()));
        check("list databases", isListed, true);
        JsonNode wanted = data("container");
        String path = text(wanted, "partitionKey");
        CosmosContainerProperties properties = new CosmosContainerProperties(container.getId(), path);
        ThroughputProperties throughput = ThroughputProperties.createManualThroughput(wanted.get("throughput").asInt());
        String made = database.createContainer(properties, throughput).getProperties().getId();
        check("create container", made, container.getId());
        CosmosContainerProperties read = container.read().getProperties();
        check("read container", read.getPartitionKeyDefinition().getPaths(), List.of(path));
        List<String> listed = database.readAllContainers().stream().map(CosmosContainerProperties::getId).toList();
        check("list containers", listed, List.of(container.getId()));
    }

    private void items() {
        List<JsonNode> made = new ArrayList<>();
        for (JsonNode item : Walk.documents()) {
            int status = container.createItem(item).getStatusCode();
            if (status == 201) {
                made.add(item);
            }
        }
        check("create items", made, Walk.documents());
        JsonNode item = data("read");
        refused("create item twice", 409, () -> container.createItem(item));
        check("read item", plain(read(item).getItem()), item);
        refused("read absent item", 404, () -> read(data("absent")));
    }

    private CosmosItemResponse<JsonNode> read(JsonNode item) {
        return container.readItem(text(item, "id"), key(item), JsonNode.class);
    }

    private static PartitionKey key(JsonNode item) {
        return new PartitionKey(text(item, "device"));
    }

    private CosmosPagedIterable<JsonNode> rows(JsonNode query) {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions();
        if (!query.get("key").isNull()) {
            options.setPartitionKey(new PartitionKey(text(query, "key")));
        }
        List<SqlParameter> parameters = new ArrayList<>();
        for (JsonNode parameter : query.path("parameters")) {
            parameters.add(new SqlParameter(text(parameter, "name"), parameter.get("value")));
        }
        return container.queryItems(new SqlQuerySpec(text(query, "text"), parameters), options, JsonNode.class);
    }

    /** 4.x has no feed of a whole container; its samples use this query. */
    private CosmosPagedIterable<JsonNode> feed() {
        return container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), JsonNode.class);
    }

    private void pages() {
        List<JsonNode> found = feed().stream().map(Walk::plain).toList();
        Walk.checkInAnyOrder("read feed", found, Walk.DATA.get("documents"));
        JsonNode wanted = data("feedPages");
        List<List<JsonNode>> pages = new ArrayList<>();
        for (FeedResponse<JsonNode> page : feed().iterableByPage(wanted.get("size").asInt())) {
            pages.add(page.getResults().stream().map(item -> item.get("id")).toList());
        }
        Walk.checkPages("feed in pages", pages, wanted);
        wanted = data("queryPages");
        Walk.checkPages("query in pages", resumed(wanted), wanted);
    }

    /** Each page by a query of its own that resumes with the continuation of the last. */
    private List<List<JsonNode>> resumed(JsonNode wanted) {
        List<List<JsonNode>> pages = new ArrayList<>();
        String continuation = null;
        for (int count = 0; count < Walk.PAGES_MAX; count += 1) {
            Iterator<FeedResponse<JsonNode>> found =
                    rows(wanted).iterableByPage(continuation, wanted.get("size").asInt()).iterator();
            FeedResponse<JsonNode> page = found.next();
            pages.add(page.getResults());
            continuation = page.getContinuationToken();
            if (continuation == null) {
                break;
            }
        }
        return pages;
    }

    private CosmosItemResponse<JsonNode> replace(JsonNode item, CosmosItemRequestOptions options) {
        return container.replaceItem(item, text(item, "id"), key(item), options);
    }

    private static CosmosItemRequestOptions ifMatch(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    private void replace() {
        String before = read(data("read")).getETag();
        String after = replace(data("replaced"), new CosmosItemRequestOptions()).getETag();
        check("replace item", plain(read(data("replaced")).getItem()), data("replaced"));
        JsonNode wanted = data("replacedOnCondition");
        check("conditional replace", replace(wanted, ifMatch(after)).getStatusCode(), 200);
        refused("conditional replace of an old version", 412, () -> replace(data("replaced"), ifMatch(before)));
        check("read replaced item", plain(read(wanted).getItem()), wanted);
        refused("replace absent item", 404, () -> replace(data("absent"), new CosmosItemRequestOptions()));
        container.upsertItem(data("upserted"));
        check("upsert item", plain(read(data("upserted")).getItem()), data("upserted"));
    }

    private void delete() {
        JsonNode deleted = data("deleted");
        Walk.Through remove =
                () -> container.deleteItem(text(deleted, "id"), key(deleted), new CosmosItemRequestOptions());
        container.deleteItem(text(deleted, "id"), key(deleted), new CosmosItemRequestOptions());
        refused("delete item", 404, () -> read(deleted));
        refused("delete absent item", 404, remove);
    }

    private void throughput() {
        JsonNode wanted = data("container");
        check("read offer", manualThroughput(), wanted.get("throughput"));
        int replaced = wanted.get("throughputReplaced").asInt();
        container.replaceThroughput(ThroughputProperties.createManualThroughput(replaced));
        check("replace offer", manualThroughput(), replaced);
    }

    private Integer manualThroughput() {
        return container.readThroughput().getProperties().getManualThroughput();
    }

    private void drop() {
        container.delete();
        refused("delete container", 404, container::read);
        database.delete();
        refused("delete database", 404, database::read);
    }
}
