package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;
import perihelion.support.Scheme;

/** Queries on items. The SDK asks for a plan of each and joins the answers of the ranges by itself. */
class QueryTest extends Fixture {
    private static final Map<Scheme, CosmosContainer> FILLED = new EnumMap<>(Scheme.class);
    private static final List<String> TEAMS = List.of("red", "green", "blue");

    /** A container of three ranges with 45 items under seven keys. */
    private CosmosContainer filled;

    @BeforeEach
    void fill() {
        filled = FILLED.computeIfAbsent(scheme, scheme -> {
            var properties = new CosmosContainerProperties(unique("c"), "/pk");
            // An order by several paths needs a composite index.
            var team = new CompositePath().setPath("/team").setOrder(CompositePathSortOrder.ASCENDING);
            var number = new CompositePath().setPath("/n").setOrder(CompositePathSortOrder.DESCENDING);
            properties.setIndexingPolicy(new IndexingPolicy().setCompositeIndexes(List.of(List.of(team, number))));
            database.createContainer(properties, ThroughputProperties.createManualThroughput(18_000));
            CosmosContainer made = database.getContainer(properties.getId());
            for (int n = 0; n < 45; n++) {
                made.createItem(json(String.format(
                        "{'id':'%02d','pk':'key-%d','n':%d,'team':'%s','tags':['t%d','t%d']}",
                        n, n % 7, n, TEAMS.get(n % 3), n % 2, n % 5)));
            }
            return made;
        });
    }

    private List<String> rows(String query) {
        return rows(new SqlQuerySpec(query), new CosmosQueryRequestOptions(), 100);
    }

    private List<String> rows(SqlQuerySpec query, CosmosQueryRequestOptions options, int size) {
        List<String> rows = new ArrayList<>();
        filled.queryItems(query, options, JsonNode.class).iterableByPage(size).forEach(page -> {
            page.getResults().forEach(row -> rows.add(row.toString()));
        });
        return rows;
    }

    /** Checks the rows of a query, in pages of several sizes. */
    private void check(String query, String... expected) {
        for (int size : new int[] {1, 4, 100}) {
            var found = rows(new SqlQuerySpec(query), new CosmosQueryRequestOptions(), size);
            assertEquals(List.of(expected), found, query + " by " + size);
        }
    }

    private static String[] numbers(IntStream numbers) {
        return numbers.mapToObj(Integer::toString).toArray(String[]::new);
    }

    @Test
    void itemsAreListedByTheirKey() {
        var items = filled.readAllItems(new PartitionKey("key-3"), ObjectNode.class).stream().toList();
        assertEquals(6, items.size());
        assertTrue(items.stream().allMatch(item -> item.get("pk").asText().equals("key-3") && item.has("_etag")));
    }

    @Test
    void everythingComesOnce() {
        assertEquals(45, rows("SELECT * FROM c").stream().distinct().count());
        assertEquals(15, rows("SELECT * FROM c WHERE c.team = 'red'").size());
    }

    @Test
    void rowsAreOrdered() {
        check("SELECT VALUE c.n FROM c ORDER BY c.n", numbers(IntStream.range(0, 45)));
        check("SELECT VALUE c.n FROM c ORDER BY c.n DESC", numbers(IntStream.range(0, 45).map(n -> 44 - n)));
        check("SELECT c.id FROM c WHERE c.n > 42 ORDER BY c.n", "{\"id\":\"43\"}", "{\"id\":\"44\"}");
        check("SELECT VALUE c.n FROM c WHERE c.n < 6 ORDER BY c.team, c.n DESC", "5", "2", "4", "1", "3", "0");
        var inKey = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("key-3"));
        refused(400, 0, () -> rows(new SqlQuerySpec("SELECT VALUE c.n FROM c ORDER BY c.team, c.n"), inKey, 10));
        check("SELECT c.n, t FROM c JOIN t IN c.tags WHERE c.n IN (7, 8) ORDER BY c.n",
                "{\"n\":7,\"t\":\"t1\"}", "{\"n\":7,\"t\":\"t2\"}", "{\"n\":8,\"t\":\"t0\"}", "{\"n\":8,\"t\":\"t3\"}");
    }

    @Test
    void rowsAreCounted() {
        check("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n", "0", "1", "2");
        check("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", "10", "11", "12");
        assertEquals(7, rows("SELECT TOP 7 * FROM c").size());
        assertEquals(5, rows("SELECT * FROM c OFFSET 40 LIMIT 10").size());
    }

    @Test
    void aggregatesAreFolded() {
        check("SELECT VALUE COUNT(1) FROM c", "45");
        check("SELECT VALUE SUM(c.n) FROM c", "990.0");
        check("SELECT VALUE AVG(c.n) FROM c", "22.0");
        check("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 3", "4");
        check("SELECT VALUE MAX(c.id) FROM c", "\"44\"");
        check("SELECT VALUE COUNT(1) FROM c WHERE c.n > 100", "0");
        check("SELECT COUNT(1) AS n, MAX(c.n) AS most FROM c", "{\"n\":45,\"most\":44}");
        check("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'key-1'", "7");
        check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c)", "7");
    }

    @Test
    void groupsAndDistinctRowsAreFolded() {
        var groups = rows("SELECT c.team, COUNT(1) AS n, AVG(c.n) AS mean FROM c GROUP BY c.team").stream().sorted();
        assertEquals(
                List.of(
                        "{\"team\":\"blue\",\"n\":15,\"mean\":23.0}",
                        "{\"team\":\"green\",\"n\":15,\"mean\":22.0}",
                        "{\"team\":\"red\",\"n\":15,\"mean\":21.0}"),
                groups.toList());
        var teams = rows("SELECT DISTINCT VALUE c.team FROM c").stream().sorted().toList();
        assertEquals(List.of("\"blue\"", "\"green\"", "\"red\""), teams);
        check("SELECT DISTINCT VALUE c.team FROM c ORDER BY c.team DESC", "\"red\"", "\"green\"", "\"blue\"");
        assertEquals(2, rows("SELECT c.pk FROM c GROUP BY c.pk OFFSET 5 LIMIT 9").size());
    }

    @Test
    void parametersAreFilledIn() {
        var parameters = List.of(new SqlParameter("@n", 30), new SqlParameter("@team", "red"), new SqlParameter("@top", 2));
        var spec = new SqlQuerySpec("SELECT TOP @top VALUE c.n FROM c WHERE c.n > @n AND c.team = @team ORDER BY c.n", parameters);
        assertEquals(List.of("33", "36"), rows(spec, new CosmosQueryRequestOptions(), 10));
    }

    @Test
    void aQueryStaysInOnePartition() {
        var options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("key-3"));
        assertEquals(List.of("38", "31"), rows(new SqlQuerySpec("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC"), options, 10));
        assertEquals(List.of("6"), rows(new SqlQuerySpec("SELECT VALUE COUNT(1) FROM c"), options, 10));
        var composed = new SqlQuerySpec("SELECT VALUE ROUND(AVG(c.n)) FROM c");
        assertEquals(1, rows(composed, options, 10).size());
    }

    @Test
    void feedRangesHaveEverythingOnce() {
        List<String> seen = new ArrayList<>();
        for (FeedRange range : filled.getFeedRanges()) {
            var options = new CosmosQueryRequestOptions().setFeedRange(range);
            seen.addAll(rows(new SqlQuerySpec("SELECT VALUE c.n FROM c ORDER BY c.n"), options, 4));
        }
        assertEquals(45, seen.stream().distinct().count());
        assertEquals(45, seen.size());
    }

    @Test
    void aContinuationGoesOnWhereItWas() {
        for (String query : List.of(
                "SELECT VALUE c.n FROM c",
                "SELECT VALUE c.n FROM c ORDER BY c.n",
                "SELECT VALUE c.n FROM c ORDER BY c.team DESC",
                "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 30",
                "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n")) {
            List<String> whole = rows(query);
            List<String> seen = new ArrayList<>();
            String token = null;
            do {
                FeedResponse<JsonNode> page = filled.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
                        .iterableByPage(token, 4)
                        .iterator()
                        .next();
                page.getResults().forEach(row -> seen.add(row.toString()));
                token = page.getContinuationToken();
            } while (token != null);
            assertEquals(whole, seen, query);
        }
    }

    @Test
    void manyAreReadAtOnce() {
        var identities = Stream.concat(
                        IntStream.range(0, 20).mapToObj(n -> new CosmosItemIdentity(new PartitionKey("key-" + n % 7), String.format("%02d", n))),
                        Stream.of(new CosmosItemIdentity(A, "none")))
                .toList();
        assertEquals(20, filled.readMany(identities, ObjectNode.class).getResults().size());
    }

    @Test
    void hierarchicalKeysAndTheirBeginnings() {
        var definition = new PartitionKeyDefinition();
        definition.setPaths(List.of("/a", "/b"));
        definition.setKind(PartitionKind.MULTI_HASH);
        definition.setVersion(PartitionKeyDefinitionVersion.V2);
        CosmosContainer deep = make(new CosmosContainerProperties(unique("c"), definition));
        for (int number = 0; number < 12; number++) {
            deep.createItem(json(String.format("{'id':'%d','a':'%d','b':'%d','n':%d}", number, number % 2, number % 3, number)));
        }
        var beginning = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKeyBuilder().add("1").build());
        var found = deep.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", beginning, Integer.class).stream().toList();
        assertEquals(List.of(1, 3, 5, 7, 9, 11), found);
        var whole = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKeyBuilder().add("1").add("2").build());
        assertEquals(List.of(5, 11), deep.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", whole, Integer.class).stream().toList());
    }

    @Test
    void distancesAndRanks() {
        var properties = new CosmosContainerProperties(unique("c"), "/pk");
        var embedding = new CosmosVectorEmbedding();
        embedding.setPath("/v");
        embedding.setDataType(CosmosVectorDataType.FLOAT32);
        embedding.setEmbeddingDimensions(2);
        embedding.setDistanceFunction(CosmosVectorDistanceFunction.EUCLIDEAN);
        var vectors = new CosmosVectorEmbeddingPolicy();
        vectors.setCosmosVectorEmbeddings(List.of(embedding));
        properties.setVectorEmbeddingPolicy(vectors);
        var text = new CosmosFullTextPath();
        text.setPath("/text");
        text.setLanguage("en-US");
        var texts = new CosmosFullTextPolicy();
        texts.setDefaultLanguage("en-US");
        texts.setPaths(List.of(text));
        properties.setFullTextPolicy(texts);
        database.createContainer(properties, ThroughputProperties.createManualThroughput(18_000));
        CosmosContainer searched = database.getContainer(properties.getId());
        List<String> words = List.of("a swimmer swims", "a bicycle", "swimming and running", "running running");
        for (int number = 0; number < words.size(); number++) {
            searched.createItem(json(String.format("{'id':'%d','pk':'k%d','text':'%s','v':[1,%d]}", number, number, words.get(number), number)));
        }
        var nearest = "SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])";
        assertEquals(List.of("0", "1"), ids(searched, nearest));
        var best = "SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'running')";
        assertEquals(List.of("3", "2"), ids(searched, best));
        var fused = "SELECT TOP 1 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim'), VectorDistance(c.v, [1, 0]))";
        assertEquals(List.of("0"), ids(searched, fused));
    }

    private static List<String> ids(CosmosContainer container, String query) {
        var found = container.queryItems(query, new CosmosQueryRequestOptions(), ObjectNode.class);
        return found.stream().map(row -> row.get("id").asText()).toList();
    }

    @Test
    void whatIsWrongIsTold() {
        for (String query : List.of("SELECT", "SELECT NOSUCH(c.n) FROM c", "SELECT * FROM c ORDER BY c.n + 1", "SELECT c.a, ABS(AVG(c.n)) AS x FROM c GROUP BY c.a")) {
            refused(400, 0, () -> rows(query));
        }
    }

    @Test
    void aQueryIsMeasured() {
        var options = new CosmosQueryRequestOptions().setQueryMetricsEnabled(true);
        var page = filled.queryItems("SELECT * FROM c", options, JsonNode.class).iterableByPage(10).iterator().next();
        assertTrue(page.getRequestCharge() > 0);
        assertTrue(page.getCosmosDiagnostics().toString().contains("retrievedDocumentCount"));
    }

    @Test
    void indexesThatAQueryUsesAreTold() {
        var options = new CosmosQueryRequestOptions().setIndexMetricsEnabled(true);
        String query = "SELECT * FROM c WHERE c.team = 'red' AND c.n > 3";
        for (var page : filled.queryItems(query, options, JsonNode.class).iterableByPage(10)) {
            String told = page.getCosmosDiagnostics().toString();
            // The SDK refuses members that it does not know, and tells nothing then.
            for (String part : List.of("\"indexUtilizationInfo\"", "/team/?", "/n/?", "/team ASC", "\"High\"")) {
                assertTrue(told.contains(part), part + " in " + told);
            }
        }
        var silent = filled.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class);
        for (var page : silent.iterableByPage(10)) {
            assertFalse(page.getCosmosDiagnostics().toString().contains("/team/?"));
        }
    }

    @Test
    void adviceOnAQueryIsGiven() {
        var options = new CosmosQueryRequestOptions()
                .setQueryAdviceEnabled(true)
                .setPartitionKey(new PartitionKey("key-1"));
        String query = "SELECT * FROM c WHERE STARTSWITH(c.id, '1', true) AND UPPER(c.team) = 'RED'";
        var page = filled.queryItems(query, options, JsonNode.class).iterableByPage(10).iterator().next();
        String[] advice = page.getQueryAdvice().split("\n");
        assertEquals(2, advice.length);
        assertTrue(advice[0].startsWith("QA1003: ") && advice[1].startsWith("QA1006: "), page.getQueryAdvice());
    }
}
