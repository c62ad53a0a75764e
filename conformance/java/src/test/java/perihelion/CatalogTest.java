package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosContainerRequestOptions;
import com.azure.cosmos.models.CosmosDatabaseProperties;
import com.azure.cosmos.models.CosmosDatabaseRequestOptions;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import perihelion.support.Feed;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Databases and containers: create, read, replace, delete, list, and the definitions that come back. */
class CatalogTest extends Fixture {
    @Test
    void aDatabaseIsCreatedReadListedAndDeleted() {
        String name = unique("db");
        var created = client.createDatabase(name);
        assertEquals(201, created.getStatusCode());
        assertTrue(created.getRequestCharge() > 0);
        UUID.fromString(created.getActivityId());
        CosmosDatabase made = client.getDatabase(name);
        CosmosDatabaseProperties properties = made.read().getProperties();
        assertEquals(name, properties.getId());
        assertEquals(created.getProperties().getResourceId(), properties.getResourceId());
        assertEquals(created.getProperties().getETag(), properties.getETag());
        assertFalse(properties.getTimestamp().isAfter(Instant.now()));
        assertTrue(client.readAllDatabases().stream().anyMatch(found -> found.getId().equals(name)));
        assertEquals(204, made.delete().getStatusCode());
        refused(404, 0, made::read);
        refused(404, 0, made::delete);
        assertTrue(client.readAllDatabases().stream().noneMatch(found -> found.getId().equals(name)));
    }

    @Test
    void aSecondDatabaseOfANameIsAConflict() {
        refused(409, 0, () -> client.createDatabase(database.getId()));
        var again = client.createDatabaseIfNotExists(database.getId());
        assertEquals(200, again.getStatusCode());
        assertEquals(database.read().getProperties().getResourceId(), again.getProperties().getResourceId());
    }

    @Test
    void createIfNotExistsCreates() {
        String name = unique("db");
        assertEquals(201, client.createDatabaseIfNotExists(name).getStatusCode());
        CosmosDatabase made = client.getDatabase(name);
        assertEquals(201, made.createContainerIfNotExists("c", "/pk").getStatusCode());
        assertEquals(200, made.createContainerIfNotExists("c", "/pk").getStatusCode());
        made.delete();
    }

    @Test
    void databasesAreListedInPages() {
        Set<String> names = new TreeSet<>();
        for (int count = 0; count < 5; count++) {
            names.add(unique("page"));
        }
        names.forEach(client::createDatabase);
        int pages = 0;
        List<String> listed = new ArrayList<>();
        for (var page : client.readAllDatabases().iterableByPage(2)) {
            assertTrue(page.getResults().size() <= 2);
            page.getResults().forEach(found -> listed.add(found.getId()));
            pages++;
        }
        assertTrue(pages >= 3);
        assertEquals(listed.size(), Set.copyOf(listed).size());
        assertTrue(listed.containsAll(names));
        names.forEach(name -> client.getDatabase(name).delete());
    }

    // The SDK cannot read a container whose name holds a percent sign: it decodes the name once too often.
    @ParameterizedTest
    @ValueSource(strings = {"ünïcödé 数据库", "with space", "a+b", "a&b=c", "q'uote\"d", "dots.and~tildes"})
    void namesMayHaveUnusualCharacters(String name) {
        client.createDatabase(name);
        CosmosDatabase made = client.getDatabase(name);
        made.createContainer(name, "/pk");
        CosmosContainer unusual = made.getContainer(name);
        unusual.createItem(json("{'id':'1','pk':'a'}"));
        assertEquals("1", unusual.readItem("1", A, ObjectNode.class).getItem().get("id").asText());
        assertEquals(List.of(name), made.readAllContainers().stream().map(CosmosContainerProperties::getId).toList());
        made.delete();
    }

    @Test
    void namesOfMoreThan255CharactersAreRefused() {
        refused(400, 0, () -> client.createDatabase("n".repeat(256)));
        refused(400, 0, () -> database.createContainer("n".repeat(256), "/pk"));
        assertEquals(201, database.createContainer("n".repeat(255), "/pk").getStatusCode());
        database.getContainer("n".repeat(255)).delete();
    }

    @Test
    void aContainerHasTheDefaultsOfTheService() {
        String name = unique("c");
        var created = database.createContainer(name, "/pk");
        assertEquals(201, created.getStatusCode());
        assertTrue(created.getRequestCharge() > 0);
        CosmosContainerProperties properties = database.getContainer(name).read().getProperties();
        assertEquals(name, properties.getId());
        assertEquals(List.of("/pk"), properties.getPartitionKeyDefinition().getPaths());
        assertEquals(IndexingMode.CONSISTENT, properties.getIndexingPolicy().getIndexingMode());
        assertTrue(properties.getIndexingPolicy().isAutomatic());
        assertEquals("/*", properties.getIndexingPolicy().getIncludedPaths().get(0).getPath());
        assertEquals("/\"_etag\"/?", properties.getIndexingPolicy().getExcludedPaths().get(0).getPath());
        assertEquals("/_ts", properties.getConflictResolutionPolicy().getConflictResolutionPath());
        assertNull(properties.getDefaultTimeToLiveInSeconds());
        assertEquals(created.getProperties().getETag(), properties.getETag());
        assertEquals(204, database.getContainer(name).delete().getStatusCode());
        refused(404, 0, () -> database.getContainer(name).read());
        refused(404, 0, () -> database.getContainer(name).delete());
    }

    @Test
    void aSecondContainerOfANameIsAConflict() {
        refused(409, 0, () -> database.createContainer(container.getId(), "/pk"));
        // A different key is found by the SDK, which compares what is there.
        var again = database.createContainerIfNotExists(container.getId(), "/pk");
        assertEquals(200, again.getStatusCode());
    }

    @Test
    void policiesComeBackAsTheyWereGiven() {
        IndexingPolicy indexing = new IndexingPolicy();
        indexing.setIncludedPaths(List.of(new IncludedPath("/name/?"), new IncludedPath("/tags/[]/?")));
        indexing.setExcludedPaths(List.of(new ExcludedPath("/*")));
        CompositePath up = new CompositePath();
        up.setPath("/a");
        CompositePath down = new CompositePath();
        down.setPath("/b");
        down.setOrder(CompositePathSortOrder.DESCENDING);
        indexing.setCompositeIndexes(List.of(List.of(up, down)));
        UniqueKeyPolicy unique = new UniqueKeyPolicy();
        unique.setUniqueKeys(List.of(new UniqueKey(List.of("/a", "/b/c")), new UniqueKey(List.of("/d"))));
        CosmosContainer made = make("/pk", properties -> properties
                .setIndexingPolicy(indexing)
                .setUniqueKeyPolicy(unique)
                .setDefaultTimeToLiveInSeconds(3600)
                .setConflictResolutionPolicy(ConflictResolutionPolicy.createLastWriterWinsPolicy("/mine")));
        CosmosContainerProperties kept = made.read().getProperties();
        assertEquals(
                List.of("/name/?", "/tags/[]/?"),
                kept.getIndexingPolicy().getIncludedPaths().stream().map(IncludedPath::getPath).toList());
        var composite = kept.getIndexingPolicy().getCompositeIndexes().get(0);
        assertEquals(CompositePathSortOrder.DESCENDING, composite.get(1).getOrder());
        assertEquals(List.of("/a", "/b/c"), kept.getUniqueKeyPolicy().getUniqueKeys().get(0).getPaths());
        assertEquals(3600, kept.getDefaultTimeToLiveInSeconds());
        assertEquals("/mine", kept.getConflictResolutionPolicy().getConflictResolutionPath());
    }

    @Test
    void replaceChangesPoliciesAndKeepsTheItems() {
        container.createItem(json("{'id':'1','pk':'a'}"));
        CosmosContainerProperties before = container.read().getProperties();
        before.setDefaultTimeToLiveInSeconds(-1);
        before.getIndexingPolicy().setExcludedPaths(List.of(new ExcludedPath("/big/*")));
        var replaced = container.replace(before);
        assertEquals(200, replaced.getStatusCode());
        CosmosContainerProperties after = container.read().getProperties();
        assertEquals(-1, after.getDefaultTimeToLiveInSeconds());
        assertTrue(after.getIndexingPolicy().getExcludedPaths().stream().anyMatch(path -> path.getPath().equals("/big/*")));
        assertEquals(before.getResourceId(), after.getResourceId());
        assertNotEquals(before.getETag(), after.getETag());
        assertEquals("1", read("1", A).get("id").asText());
    }

    @Test
    void replaceCannotChangeThePartitionKey() {
        CosmosContainerProperties other = container.read().getProperties();
        other.getPartitionKeyDefinition().setPaths(List.of("/other"));
        refused(400, 0, () -> container.replace(other));
        assertEquals(List.of("/pk"), container.read().getProperties().getPartitionKeyDefinition().getPaths());
    }

    @Test
    void replaceCanBeHeldToATag() {
        String old = container.read().getProperties().getETag();
        CosmosContainerProperties properties = container.read().getProperties().setDefaultTimeToLiveInSeconds(5);
        container.replace(properties, new CosmosContainerRequestOptions().setIfMatchETag(old));
        refused(412, 0, () -> container.replace(properties, new CosmosContainerRequestOptions().setIfMatchETag(old)));
    }

    @Test
    void deletesCanBeHeldToATag() {
        String name = unique("db");
        client.createDatabase(name);
        CosmosDatabase made = client.getDatabase(name);
        var stale = new CosmosDatabaseRequestOptions().setIfMatchETag("\"00000000-0000-0000-0000-000000000000\"");
        refused(412, 0, () -> made.delete(stale));
        var fresh = new CosmosDatabaseRequestOptions().setIfMatchETag(made.read().getProperties().getETag());
        assertEquals(204, made.delete(fresh).getStatusCode());
    }

    @Test
    void containersAreListedInPages() {
        String name = unique("db");
        client.createDatabase(name);
        CosmosDatabase made = client.getDatabase(name);
        for (int count = 0; count < 5; count++) {
            made.createContainer("c" + count, "/pk");
        }
        List<Integer> sizes = new ArrayList<>();
        Set<String> names = new TreeSet<>();
        for (var page : made.readAllContainers().iterableByPage(2)) {
            sizes.add(page.getResults().size());
            page.getResults().forEach(found -> names.add(found.getId()));
        }
        assertEquals(List.of(2, 2, 1), sizes);
        assertEquals(Set.of("c0", "c1", "c2", "c3", "c4"), names);
        made.delete();
        refused(404, 1003, () -> made.readAllContainers().stream().toList());
    }

    @Test
    void aContainerInAMissingDatabaseIs404() {
        CosmosDatabase missing = client.getDatabase(unique("none"));
        refused(404, 0, missing::read);
        refused(404, 1003, () -> missing.createContainer("c", "/pk"));
    }

    @Test
    void moreThroughputMakesMoreRanges() {
        CosmosContainerProperties properties = new CosmosContainerProperties(unique("c"), "/pk");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(18_000));
        CosmosContainer wide = database.getContainer(properties.getId());
        assertEquals(3, wide.getFeedRanges().size());
        for (int number = 0; number < 30; number++) {
            wide.createItem(json("{'id':'" + number + "','pk':'key-" + number + "'}"));
        }
        assertEquals(30, Feed.ids(wide).stream().collect(Collectors.toSet()).size());
        assertEquals(1, container.getFeedRanges().size());
    }

    @Test
    void throughputIsChecked() {
        var autoscale = ThroughputProperties.createAutoscaledThroughput(4000);
        assertEquals(201, database.createContainer(new CosmosContainerProperties(unique("c"), "/pk"), autoscale).getStatusCode());
        var shared = client.createDatabase(unique("db"), ThroughputProperties.createManualThroughput(1000));
        assertEquals(201, shared.getStatusCode());
        for (int wrong : new int[] {399, 450}) {
            var throughput = ThroughputProperties.createManualThroughput(wrong);
            refused(400, 0, () -> database.createContainer(new CosmosContainerProperties(unique("c"), "/pk"), throughput));
        }
    }

    @Test
    void aContainerCreatedAgainIsEmptyAndAnOldClientFindsIt() {
        String name = unique("c");
        database.createContainer(name, "/pk");
        CosmosContainer made = database.getContainer(name);
        made.createItem(json("{'id':'1','pk':'a'}"));
        String rid = made.read().getProperties().getResourceId();
        try (var other = Server.shared().client(scheme)) {
            CosmosDatabase elsewhere = other.getDatabase(database.getId());
            elsewhere.getContainer(name).delete();
            elsewhere.createContainer(name, "/pk");
        }
        // This client knows the old one only: its ids, its ranges and its session.
        made.createItem(json("{'id':'2','pk':'a'}"));
        refused(404, 0, () -> made.readItem("1", A, ObjectNode.class));
        assertEquals("2", made.readItem("2", A, ObjectNode.class).getItem().get("id").asText());
        assertNotEquals(rid, made.read().getProperties().getResourceId());
    }

    @Test
    void aTimeToLiveOutOfBoundsIsRefused() {
        for (int ttl : new int[] {0, -2}) {
            refused(400, 0, () -> make("/pk", properties -> properties.setDefaultTimeToLiveInSeconds(ttl)));
        }
    }

    @Test
    void theKeyOfAnotherPartitionIsNotFound() {
        container.createItem(json("{'id':'1','pk':'a'}"));
        refused(404, 0, () -> read("1", new PartitionKey("b")));
    }
}
