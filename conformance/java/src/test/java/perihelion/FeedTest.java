package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import perihelion.support.Feed;
import perihelion.support.Fixture;

/** Lists of items: pages, continuations, ranges. */
class FeedTest extends Fixture {
    private static List<String> ids(List<com.azure.cosmos.models.FeedResponse<ObjectNode>> pages) {
        return pages.stream().flatMap(page -> page.getResults().stream()).map(item -> item.get("id").asText()).toList();
    }

    @BeforeEach
    void fill() {
        for (int number = 0; number < 25; number++) {
            container.createItem(json("{'id':'" + number + "','pk':'key-" + number % 4 + "'}"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 7, 24, 25, 26})
    void pagesOfAnySizeGiveTheSameOrder(int size) {
        List<String> whole = Feed.ids(container);
        assertEquals(25, whole.stream().distinct().count());
        var pages = Feed.pages(container, FeedRange.forFullRange(), null, size);
        assertTrue(pages.stream().allMatch(page -> page.getResults().size() <= size && page.getRequestCharge() > 0));
        assertEquals(whole, ids(pages));
        assertNull(pages.get(pages.size() - 1).getContinuationToken());
    }

    @Test
    void aContinuationGoesOnWhereItWas() {
        var pages = Feed.pages(container, FeedRange.forFullRange(), null, 4);
        String token = pages.get(2).getContinuationToken();
        List<String> rest = ids(Feed.pages(container, FeedRange.forFullRange(), token, 6));
        assertEquals(Feed.ids(container).subList(12, 25), rest);
        assertEquals(rest, ids(Feed.pages(container, FeedRange.forFullRange(), token, 6)));
    }

    @Test
    void aRangeOfOneKeyHasItsItems() {
        var range = FeedRange.forLogicalPartition(new PartitionKey("key-1"));
        List<String> ids = ids(Feed.pages(container, range, null, 3));
        assertEquals(List.of("1", "13", "17", "21", "5", "9"), ids.stream().sorted().toList());
    }

    @Test
    void theRangesOfAContainerHaveAllItemsOnce() {
        var properties = new CosmosContainerProperties(unique("c"), "/pk");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(24_000));
        CosmosContainer wide = database.getContainer(properties.getId());
        for (int number = 0; number < 60; number++) {
            wide.createItem(json("{'id':'" + number + "','pk':'key-" + number + "'}"));
        }
        List<String> seen = new ArrayList<>();
        assertEquals(4, wide.getFeedRanges().size());
        for (FeedRange range : wide.getFeedRanges()) {
            // A range can be written down and read again.
            seen.addAll(ids(Feed.pages(wide, FeedRange.fromString(range.toString()), null, 7)));
        }
        assertEquals(60, seen.size());
        assertEquals(60, seen.stream().distinct().count());
    }
}
