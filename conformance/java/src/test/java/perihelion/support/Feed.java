package perihelion.support;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.implementation.ImplementationBridgeHelpers.CosmosQueryRequestOptionsHelper;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/**
 * Lists of items. The SDK has them as queries only and asks for a plan of each; with the plan switched off (as the
 * Spark connector does, by the same accessor) it sends the query for everything to the ranges directly.
 */
public final class Feed {
    private static final String EVERYTHING = "SELECT * FROM c";

    private Feed() {}

    public static List<ObjectNode> all(CosmosContainer container) {
        return pages(container, FeedRange.forFullRange(), null, 1000).stream()
                .flatMap(page -> page.getResults().stream())
                .toList();
    }

    public static List<String> ids(CosmosContainer container) {
        return all(container).stream().map(item -> item.get("id").asText()).toList();
    }

    /** The pages of a range, from a continuation on. */
    public static List<FeedResponse<ObjectNode>> pages(
            CosmosContainer container, FeedRange range, String continuation, int size) {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setFeedRange(range);
        CosmosQueryRequestOptionsHelper.getCosmosQueryRequestOptionsAccessor().disallowQueryPlanRetrieval(options);
        List<FeedResponse<ObjectNode>> pages = new ArrayList<>();
        container.queryItems(EVERYTHING, options, ObjectNode.class)
                .iterableByPage(continuation, size)
                .forEach(pages::add);
        return pages;
    }
}
