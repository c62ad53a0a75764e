package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.plain;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import perihelion.support.Feed;
import perihelion.support.Fixture;

/** Items one by one: create, read, replace, upsert, delete, and what comes back. */
class ItemsTest extends Fixture {
    private static final CosmosItemRequestOptions PLAIN = new CosmosItemRequestOptions();

    @Test
    void anItemIsCreatedReadReplacedUpsertedAndDeleted() {
        ObjectNode item = json("{'id':'1','pk':'a','v':1}");
        assertEquals(item, plain(good(201, container.createItem(item)).getItem()));
        assertEquals(item, plain(good(200, container.readItem("1", A, ObjectNode.class)).getItem()));
        item.put("v", 2);
        assertEquals(item, plain(good(200, container.replaceItem(item, "1", A, PLAIN)).getItem()));
        item.put("v", 3);
        assertEquals(item, plain(good(200, container.upsertItem(item)).getItem()));
        good(204, container.deleteItem("1", A, PLAIN));
        refused(404, 0, () -> read("1", A));
        refused(404, 0, () -> container.deleteItem("1", A, PLAIN));
        assertEquals(item, plain(good(201, container.upsertItem(item)).getItem()));
    }

    @Test
    void systemPropertiesAreThoseOfTheService() {
        ObjectNode first = container.createItem(json("{'id':'1','pk':'a'}")).getItem();
        ObjectNode second = container.upsertItem(json("{'id':'1','pk':'a','v':1}")).getItem();
        assertEquals(first.get("_rid"), second.get("_rid"));
        assertNotEquals(first.get("_etag"), second.get("_etag"));
        assertTrue(first.get("_etag").asText().matches("\".+\""));
        assertTrue(second.get("_ts").asLong() >= first.get("_ts").asLong());
        assertEquals("attachments/", first.get("_attachments").asText());
        assertTrue(first.get("_self").asText().endsWith("/docs/" + first.get("_rid").asText() + "/"));
    }

    @Test
    void theHeaderHasTheTagOfTheItem() {
        var created = container.createItem(json("{'id':'1','pk':'a'}"));
        assertEquals(created.getItem().get("_etag").asText(), created.getETag());
        assertEquals(created.getETag(), container.readItem("1", A, ObjectNode.class).getETag());
    }

    @Test
    void aSecondItemOfAnIdIsAConflict() {
        container.createItem(json("{'id':'1','pk':'a','v':1}"));
        refused(409, 0, () -> container.createItem(json("{'id':'1','pk':'a','v':2}")));
        assertEquals(1, read("1", A).get("v").asInt());
        good(201, container.createItem(json("{'id':'1','pk':'b','v':2}")));
    }

    @Test
    void aReplaceOfWhatIsAbsentIs404() {
        refused(404, 0, () -> container.replaceItem(json("{'id':'1','pk':'a'}"), "1", A, PLAIN));
    }

    @Test
    void aReplaceMayRenameAnItem() {
        container.createItem(json("{'id':'1','pk':'a'}"));
        container.createItem(json("{'id':'taken','pk':'a'}"));
        refused(409, 0, () -> container.replaceItem(json("{'id':'taken','pk':'a'}"), "1", A, PLAIN));
        container.replaceItem(json("{'id':'2','pk':'a'}"), "1", A, PLAIN);
        container.readItem("2", A, ObjectNode.class);
        refused(404, 0, () -> container.readItem("1", A, ObjectNode.class));
    }

    @Test
    void itemsOfAMissingContainerAre404() {
        CosmosContainer missing = database.getContainer(unique("none"));
        // The SDK reads the container before the item and gives this substatus to what it hears.
        refused(404, 1003, () -> missing.readItem("1", A, ObjectNode.class));
        refused(404, 1003, () -> missing.createItem(json("{'id':'1','pk':'a'}")));
    }

    @Test
    void aWriteMayLeaveTheItemOut() {
        CosmosItemRequestOptions minimal = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        var created = good(201, container.createItem(json("{'id':'1','pk':'a','v':1}"), A, minimal));
        assertNull(created.getItem());
        assertEquals(created.getETag(), container.readItem("1", A, ObjectNode.class).getETag());
        assertNull(good(200, container.upsertItem(json("{'id':'1','pk':'a','v':2}"), minimal)).getItem());
        assertNull(good(200, container.replaceItem(json("{'id':'1','pk':'a','v':3}"), "1", A, minimal)).getItem());
        assertEquals(3, read("1", A).get("v").asInt());
    }

    @Test
    void theKeyOfTheItemMustBeTheKeyOfTheRequest() {
        refused(400, 1001, () -> container.createItem(json("{'id':'1','pk':'b'}"), A, PLAIN));
        assertEquals(0, Feed.all(container).size());
    }

    @Test
    void itemsCanBeObjectsOfAnyClass() {
        container.createItem(Map.of("id", "1", "pk", "a", "tags", new String[] {"x", "y"}));
        Map<?, ?> read = container.readItem("1", A, Map.class).getItem();
        assertEquals(java.util.List.of("x", "y"), read.get("tags"));
    }

    @Test
    void anItemReadCanBeWrittenBack() {
        ObjectNode item = container.createItem(json("{'id':'1','pk':'a','v':1}")).getItem();
        item.put("v", 2);
        ObjectNode again = container.replaceItem(item, "1", A, PLAIN).getItem();
        assertNotEquals(item.get("_etag"), again.get("_etag"));
        assertEquals(plain(item), plain(again));
    }

    @ParameterizedTest
    @ValueSource(strings = {"a b", "100%", "a+b", "ünï", "数据", "🙂", "a:b@c;d,e", "(a)[b]{c}", "'quoted'", "a.b~c"})
    void unusualIds(String id) {
        ObjectNode item = json("{'pk':'a','v':1}").put("id", id);
        good(201, container.createItem(item));
        assertEquals(id, container.readItem(id, A, ObjectNode.class).getItem().get("id").asText());
        good(200, container.replaceItem(item, id, A, PLAIN));
        good(204, container.deleteItem(id, A, PLAIN));
    }

    @Test
    void valuesComeBackAsTheyWere() {
        ObjectNode item = json("{'id':'1','pk':'a','none':null,'yes':true,'big':9007199254740993,'small':5e-324,"
                + "'text':'tab\\t nul\\u0000 ü 🙂','nested':{'list':[[],{},[1,[2,[3]]]]},'empty':''}");
        container.createItem(item);
        assertEquals(item, plain(read("1", A)));
    }

    @Test
    void anItemOfMoreThanTwoMegabytesIsRefused() {
        ObjectNode item = json("{'id':'1','pk':'a'}").put("text", "x".repeat(2 * 1024 * 1024));
        refused(413, 0, () -> container.createItem(item));
        good(201, container.createItem(item.put("text", "x".repeat(2 * 1024 * 1024 - 4096))));
    }

    @Test
    void aLargerReadCostsMore() {
        container.createItem(json("{'id':'s','pk':'a'}"));
        container.createItem(json("{'id':'l','pk':'a'}").put("text", "x".repeat(100_000)));
        double small = container.readItem("s", A, ObjectNode.class).getRequestCharge();
        double large = container.readItem("l", A, ObjectNode.class).getRequestCharge();
        assertEquals(1.0, small);
        assertTrue(large > 5, () -> "charge " + large);
    }

    @Test
    void deletingAKeyDeletesItsItemsAlone() {
        for (int number = 0; number < 20; number++) {
            container.createItem(json("{'id':'" + number + "','pk':'full'}"));
        }
        container.createItem(json("{'id':'other','pk':'other'}"));
        container.deleteAllItemsByPartitionKey(new PartitionKey("full"), PLAIN);
        assertEquals(java.util.List.of("other"), Feed.ids(container));
        refused(404, 0, () -> read("3", new PartitionKey("full")));
    }
}
