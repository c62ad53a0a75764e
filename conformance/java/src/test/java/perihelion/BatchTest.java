package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import perihelion.support.Feed;
import perihelion.support.Fixture;

/** Transactional batches: all or nothing. */
class BatchTest extends Fixture {
    private static List<Integer> statuses(CosmosBatchResponse response) {
        return response.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList();
    }

    @Test
    void allStepsAreDone() {
        container.createItem(json("{'id':'old','pk':'a','v':1}"));
        CosmosBatch batch = CosmosBatch.createCosmosBatch(A);
        batch.createItemOperation(json("{'id':'new','pk':'a'}"));
        batch.upsertItemOperation(json("{'id':'new','pk':'a','v':2}"));
        batch.replaceItemOperation("old", json("{'id':'old','pk':'a','v':2}"));
        batch.patchItemOperation("old", CosmosPatchOperations.create().increment("/v", 1L));
        batch.readItemOperation("old");
        batch.deleteItemOperation("new");
        CosmosBatchResponse response = container.executeCosmosBatch(batch);
        assertTrue(response.isSuccessStatusCode());
        assertEquals(List.of(201, 200, 200, 200, 200, 204), statuses(response));
        assertEquals(3, response.getResults().get(4).getItem(ObjectNode.class).get("v").asInt());
        assertNotNull(response.getResults().get(0).getETag());
        assertTrue(response.getRequestCharge() > 0);
        assertTrue(response.getSessionToken().contains("#"));
        UUID.fromString(response.getActivityId());
        assertEquals(List.of("old"), Feed.ids(container));
    }

    @Test
    void nothingIsDoneWhenOneStepFails() {
        ObjectNode there = container.createItem(json("{'id':'there','pk':'a'}")).getItem();
        CosmosBatch batch = CosmosBatch.createCosmosBatch(A);
        batch.createItemOperation(json("{'id':'new','pk':'a'}"));
        batch.createItemOperation(json("{'id':'there','pk':'a'}"));
        batch.deleteItemOperation("there");
        CosmosBatchResponse response = container.executeCosmosBatch(batch);
        assertFalse(response.isSuccessStatusCode());
        assertEquals(409, response.getStatusCode());
        assertEquals(List.of(424, 409, 424), statuses(response));
        assertEquals(List.of(there), Feed.all(container));
    }

    @Test
    void stepsAreHeldToTheirConditions() {
        String old = container.createItem(json("{'id':'1','pk':'a','v':1}")).getETag();
        String current = container.upsertItem(json("{'id':'1','pk':'a','v':2}")).getETag();
        for (var pair : List.of(List.of(old, 412), List.of(current, 200))) {
            CosmosBatch batch = CosmosBatch.createCosmosBatch(A);
            var condition = new CosmosBatchItemRequestOptions().setIfMatchETag((String) pair.get(0));
            batch.replaceItemOperation("1", json("{'id':'1','pk':'a','v':3}"), condition);
            assertEquals(pair.get(1), container.executeCosmosBatch(batch).getStatusCode());
        }
        assertEquals(3, read("1", A).get("v").asInt());
    }

    @Test
    void aMissingItemFailsTheBatch() {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(A);
        batch.createItemOperation(json("{'id':'1','pk':'a'}"));
        batch.readItemOperation("none");
        CosmosBatchResponse response = container.executeCosmosBatch(batch);
        assertEquals(404, response.getStatusCode());
        assertEquals(0, response.getSubStatusCode());
        assertEquals(List.of(424, 404), statuses(response));
    }

    @Test
    void aHundredStepsAreAllowedAndMoreNot() {
        CosmosBatch hundred = CosmosBatch.createCosmosBatch(A);
        for (int number = 0; number < 100; number++) {
            hundred.createItemOperation(json("{'id':'" + number + "','pk':'a'}"));
        }
        assertEquals(200, container.executeCosmosBatch(hundred).getStatusCode());
        assertEquals(100, Feed.all(container).size());
        hundred.createItemOperation(json("{'id':'100','pk':'a'}"));
        refused(400, 0, () -> container.executeCosmosBatch(hundred));
    }

    @Test
    void anItemOfAnotherKeyFailsTheBatch() {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("b"));
        batch.createItemOperation(json("{'id':'1','pk':'a'}"));
        CosmosBatchResponse response = container.executeCosmosBatch(batch);
        assertEquals(400, response.getStatusCode());
        assertEquals(List.of(), Feed.all(container));
    }
}
