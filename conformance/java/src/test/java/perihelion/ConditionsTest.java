package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;
import perihelion.support.Server;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** ETags as conditions, alone and in races. */
class ConditionsTest extends Fixture {
    private static CosmosItemRequestOptions ifMatch(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    private static CosmosItemRequestOptions ifNoneMatch(String etag) {
        return new CosmosItemRequestOptions().setIfNoneMatchETag(etag);
    }

    @Test
    void anUnchangedItemIsNotSentAgain() {
        String etag = container.createItem(json("{'id':'1','pk':'a'}")).getETag();
        var unchanged = good(304, container.readItem("1", A, ifNoneMatch(etag), ObjectNode.class));
        assertNull(unchanged.getItem());
        container.upsertItem(json("{'id':'1','pk':'a','v':2}"));
        var changed = good(200, container.readItem("1", A, ifNoneMatch(etag), ObjectNode.class));
        assertEquals(2, changed.getItem().get("v").asInt());
        assertNotEquals(etag, changed.getETag());
    }

    @Test
    void anOldTagStopsEveryWrite() {
        String old = container.createItem(json("{'id':'1','pk':'a','v':1}")).getETag();
        String current = container.replaceItem(json("{'id':'1','pk':'a','v':2}"), "1", A, ifMatch(old)).getETag();
        refused(412, 0, () -> container.replaceItem(json("{'id':'1','pk':'a','v':3}"), "1", A, ifMatch(old)));
        refused(412, 0, () -> container.upsertItem(json("{'id':'1','pk':'a','v':3}"), ifMatch(old)));
        refused(412, 0, () -> container.deleteItem("1", A, ifMatch(old)));
        var patch = CosmosPatchOperations.create().set("/v", 3);
        var options = new CosmosPatchItemRequestOptions();
        options.setIfMatchETag(old);
        refused(412, 0, () -> container.patchItem("1", A, patch, options, ObjectNode.class));
        assertEquals(2, read("1", A).get("v").asInt());
        good(204, container.deleteItem("1", A, ifMatch(current)));
    }

    @Test
    void aStarMeansThatTheItemMustExist() {
        refused(404, 0, () -> container.replaceItem(json("{'id':'1','pk':'a'}"), "1", A, ifMatch("*")));
        container.createItem(json("{'id':'1','pk':'a'}"));
        good(200, container.replaceItem(json("{'id':'1','pk':'a','v':1}"), "1", A, ifMatch("*")));
    }

    @Test
    void anUpsertMayBeToldNotToReplace() {
        good(201, container.upsertItem(json("{'id':'1','pk':'a'}"), ifNoneMatch("*")));
        refused(412, 0, () -> container.upsertItem(json("{'id':'1','pk':'a'}"), ifNoneMatch("*")));
    }

    @Test
    void oneOfTwoClientsWinsEachRace() {
        try (var other = Server.shared().client(scheme)) {
            var mirror = other.getDatabase(database.getId()).getContainer(container.getId());
            container.createItem(json("{'id':'1','pk':'a','v':0}"));
            for (int round = 1; round <= 20; round++) {
                String etag = container.readItem("1", A, ObjectNode.class).getETag();
                ObjectNode next = json("{'id':'1','pk':'a','v':" + round + "}");
                long winners = Stream.of(container, mirror)
                        .parallel()
                        .filter(racer -> {
                            try {
                                racer.replaceItem(next, "1", A, ifMatch(etag));
                                return true;
                            } catch (CosmosException error) {
                                assertEquals(412, error.getStatusCode());
                                return false;
                            }
                        })
                        .count();
                assertEquals(1, winners);
                assertEquals(round, read("1", A).get("v").asInt());
            }
        }
    }

    @Test
    void ofManyCreatesOfAnIdOneSucceeds() {
        try (var asynchronous = Server.shared().builder(scheme).buildAsyncClient()) {
            CosmosAsyncContainer many =
                    asynchronous.getDatabase(database.getId()).getContainer(container.getId());
            var statuses = Flux.range(0, 30)
                    .flatMap(number -> many.createItem(json("{'id':'1','pk':'a','v':" + number + "}"))
                            .map(response -> response.getStatusCode())
                            .onErrorResume(
                                    CosmosException.class, error -> Mono.just(error.getStatusCode())))
                    .collectList()
                    .block();
            assertEquals(1, statuses.stream().filter(status -> status == 201).count());
            assertEquals(29, statuses.stream().filter(status -> status == 409).count());
        }
    }

    @Test
    void incrementsOfManyAreNotLost() {
        container.createItem(json("{'id':'1','pk':'a','n':0}"));
        CosmosPatchOperations increment = CosmosPatchOperations.create().increment("/n", 1L);
        try (var asynchronous = Server.shared().builder(scheme).buildAsyncClient()) {
            CosmosAsyncContainer many =
                    asynchronous.getDatabase(database.getId()).getContainer(container.getId());
            Flux.range(0, 50)
                    .flatMap(number -> many.patchItem("1", A, increment, ObjectNode.class))
                    .blockLast();
        }
        assertEquals(50, read("1", A).get("n").asInt());
    }
}
