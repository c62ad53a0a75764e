package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import perihelion.support.Feed;
import perihelion.support.Fixture;

/** Bulk: many operations in few requests, each for itself. */
class BulkTest extends Fixture {
    private static PartitionKey key(int number) {
        return new PartitionKey("k" + number % 7);
    }

    private static CosmosItemOperation create(int number) {
        var item = json("{'id':'" + number + "','pk':'k" + number % 7 + "','v':" + number + "}");
        return CosmosBulkOperations.getCreateItemOperation(item, key(number), "create " + number);
    }

    /** The status of each operation by the context that it was given. */
    private static Map<String, Integer> run(CosmosContainer container, List<CosmosItemOperation> operations) {
        Map<String, Integer> statuses = new TreeMap<>();
        for (var response : container.<String>executeBulkOperations(operations)) {
            if (response.getException() != null) {
                throw new AssertionError(response.getException());
            }
            var answer = response.getResponse();
            statuses.put(response.getOperation().getContext(), answer.getStatusCode());
            assertTrue(answer.getRequestCharge() > 0);
        }
        return statuses;
    }

    @Test
    void thousandCreatesOverSeveralRanges() {
        var properties = new CosmosContainerProperties(unique("c"), "/pk");
        database.createContainer(properties, ThroughputProperties.createManualThroughput(18_000));
        CosmosContainer wide = database.getContainer(properties.getId());
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int number = 0; number < 1000; number++) {
            operations.add(create(number));
        }
        var statuses = run(wide, operations);
        assertEquals(1000, statuses.size());
        assertTrue(statuses.values().stream().allMatch(status -> status == 201));
        assertEquals(1000, Feed.ids(wide).stream().distinct().count());
    }

    @Test
    void eachOperationHasAStatusOfItsOwn() {
        run(container, List.of(create(1), create(2), create(3), create(4)));
        var patch = CosmosPatchOperations.create().increment("/v", 10L);
        var statuses = run(container, List.of(
                create(1),
                CosmosBulkOperations.getReadItemOperation("none", key(1), "read none"),
                CosmosBulkOperations.getReadItemOperation("1", key(1), "read"),
                CosmosBulkOperations.getPatchItemOperation("1", key(1), patch, "patch"),
                CosmosBulkOperations.getReplaceItemOperation("2", json("{'id':'2','pk':'k2','v':'new'}"), key(2), "replace"),
                CosmosBulkOperations.getUpsertItemOperation(json("{'id':'3','pk':'k3','v':'new'}"), key(3), "upsert"),
                CosmosBulkOperations.getUpsertItemOperation(json("{'id':'5','pk':'k5'}"), key(5), "upsert new"),
                CosmosBulkOperations.getDeleteItemOperation("4", key(4), "delete")));
        assertEquals(
                Map.of("create 1", 409, "read none", 404, "read", 200, "patch", 200, "replace", 200, "upsert", 200,
                        "upsert new", 201, "delete", 204),
                statuses);
        assertEquals(11, read("1", key(1)).get("v").asInt());
        assertEquals(List.of("1", "2", "3", "5"), Feed.ids(container).stream().sorted().toList());
    }
}
