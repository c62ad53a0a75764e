package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.eventually;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import perihelion.support.Fixture;

/** The pull model of the change feed. */
class ChangeFeedTest extends Fixture {
    /** Changes until there is nothing new, and where to go on. */
    private record Read(List<JsonNode> rows, String token) {
        List<String> ids() {
            return rows.stream().map(row -> row.get("id").asText()).toList();
        }
    }

    private static Read changes(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<JsonNode> rows = new ArrayList<>();
        String token = null;
        for (var page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            rows.addAll(page.getResults());
            token = page.getContinuationToken();
            assertTrue(page.getRequestCharge() > 0);
        }
        return new Read(rows, token);
    }

    private static CosmosChangeFeedRequestOptions fromBeginning(FeedRange range) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
    }

    private static CosmosChangeFeedRequestOptions fromNow() {
        return CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange());
    }

    private static CosmosChangeFeedRequestOptions goingOn(Read read) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(read.token());
    }

    private void create(String... ids) {
        for (String id : ids) {
            container.createItem(json("{'id':'" + id + "','pk':'a'}"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 100})
    void lastVersionsComeInTheOrderOfWrites(int size) {
        create("1", "2", "3");
        container.upsertItem(json("{'id':'1','pk':'a','n':2}"));
        container.deleteItem("2", A, new CosmosItemRequestOptions());
        Read read = changes(container, fromBeginning(FeedRange.forFullRange()).setMaxItemCount(size));
        assertEquals(List.of("3", "1"), read.ids());
        assertTrue(read.rows().get(0).get("_lsn").asLong() < read.rows().get(1).get("_lsn").asLong());
        assertEquals(List.of(), changes(container, goingOn(read)).ids());
        create("4");
        assertEquals(List.of("4"), changes(container, goingOn(read)).ids());
    }

    @Test
    void aFeedStartsNowOrAtATime() {
        create("1");
        Read now = changes(container, fromNow());
        assertEquals(List.of(), now.ids());
        Instant second = Instant.ofEpochSecond(read("1", A).get("_ts").asLong());
        eventually(() -> Instant.now().isAfter(second.plusMillis(1100)));
        create("2");
        assertEquals(List.of("2"), changes(container, goingOn(now)).ids());
        var range = FeedRange.forFullRange();
        var later = CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(second.plusSeconds(1), range);
        assertEquals(List.of("2"), changes(container, later).ids());
        var both = CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(second, range);
        assertEquals(List.of("1", "2"), changes(container, both).ids());
    }

    @Test
    void rangesAndKeysDivideAWideContainer() {
        var properties = new CosmosContainerProperties(unique("c"), "/pk");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(24_000));
        container = database.getContainer(properties.getId());
        for (int number = 0; number < 30; number++) {
            container.createItem(json("{'id':'" + number + "','pk':'key-" + number + "'}"));
        }
        List<Integer> all = IntStream.range(0, 30).boxed().toList();
        Read whole = changes(container, fromBeginning(FeedRange.forFullRange()).setMaxItemCount(4));
        assertEquals(all, whole.ids().stream().map(Integer::valueOf).sorted().toList());
        List<String> parts = new ArrayList<>();
        for (FeedRange range : container.getFeedRanges()) {
            parts.addAll(changes(container, fromBeginning(range)).ids());
        }
        assertEquals(all, parts.stream().map(Integer::valueOf).sorted().toList());
        Read ofKey = changes(container, fromBeginning(FeedRange.forLogicalPartition(new PartitionKey("key-7"))));
        assertEquals(List.of("7"), ofKey.ids());
        container.createItem(json("{'id':'x','pk':'key-7'}"));
        container.createItem(json("{'id':'y','pk':'key-8'}"));
        assertEquals(List.of("x"), changes(container, goingOn(ofKey)).ids());
        assertEquals(List.of("x", "y"), changes(container, goingOn(whole)).ids().stream().sorted().toList());
    }

    @Test
    void allVersionsAndDeletesComeWithMetadata() {
        container = make("/pk", properties -> properties.setChangeFeedPolicy(
                ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10))));
        Read start = changes(container, fromNow().allVersionsAndDeletes());
        assertEquals(List.of(), start.rows());
        create("1");
        container.upsertItem(json("{'id':'1','pk':'a','n':2}"));
        container.deleteItem("1", A, new CosmosItemRequestOptions());
        List<JsonNode> rows = changes(container, goingOn(start).allVersionsAndDeletes()).rows();
        assertEquals(
                List.of("create", "replace", "delete"),
                rows.stream().map(row -> row.at("/metadata/operationType").asText()).toList());
        assertEquals("1", rows.get(0).at("/current/id").asText());
        assertFalse(rows.get(1).at("/previous").isMissingNode());
        assertEquals(rows.get(0).at("/metadata/lsn"), rows.get(1).at("/metadata/previousImageLSN"));
        assertEquals("1", rows.get(2).at("/previous/id").asText());
        assertEquals("a", rows.get(2).at("/metadata/partitionKey/pk").asText());
    }

    @Test
    void versionsNeedARetention() {
        refused(400, 0, () -> changes(container, fromNow().allVersionsAndDeletes()));
    }
}
