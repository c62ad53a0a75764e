package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.plain;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import perihelion.support.ByHand;
import perihelion.support.Feed;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Partition keys of every type, absent, nested and hierarchical. */
class PartitionKeysTest extends Fixture {
    static Stream<Arguments> keys() {
        return Stream.of(
                Arguments.of("'text'", new PartitionKey("text")),
                Arguments.of("''", new PartitionKey("")),
                Arguments.of("'ünï 🙂'", new PartitionKey("ünï 🙂")),
                Arguments.of("0", new PartitionKey(0)),
                Arguments.of("-1", new PartitionKey(-1)),
                Arguments.of("1.5", new PartitionKey(1.5)),
                Arguments.of("9007199254740991", new PartitionKey(9007199254740991L)),
                Arguments.of("true", new PartitionKey(true)),
                Arguments.of("false", new PartitionKey(false)),
                Arguments.of("null", new PartitionKeyBuilder().addNullValue().build()));
    }

    @ParameterizedTest
    @MethodSource("keys")
    void anItemIsFoundUnderItsKey(String value, PartitionKey key) {
        ObjectNode item = json("{'id':'1','pk':" + value + "}");
        // With the key in the request and with the key that the SDK takes from the item.
        good(201, container.createItem(item, key, new CosmosItemRequestOptions()));
        refused(409, 0, () -> container.createItem(item));
        assertEquals(item, plain(good(200, container.readItem("1", key, ObjectNode.class)).getItem()));
        good(204, container.deleteItem("1", key, new CosmosItemRequestOptions()));
    }

    @Test
    void anItemWithoutAKeyIsNotTheOneWithNull() {
        good(201, container.createItem(json("{'id':'1','v':'none'}")));
        good(201, container.createItem(json("{'id':'1','pk':null,'v':'null'}")));
        assertEquals("none", read("1", PartitionKey.NONE).get("v").asText());
        PartitionKey nothing = new PartitionKeyBuilder().addNullValue().build();
        assertEquals("null", read("1", nothing).get("v").asText());
        good(204, container.deleteItem("1", PartitionKey.NONE, new CosmosItemRequestOptions()));
        refused(404, 0, () -> read("1", PartitionKey.NONE));
        assertEquals("null", read("1", nothing).get("v").asText());
    }

    @Test
    void nestedAndQuotedPaths() {
        CosmosContainer nested = make("/address/city", properties -> {});
        nested.createItem(json("{'id':'1','address':{'city':'Köln'}}"));
        good(200, nested.readItem("1", new PartitionKey("Köln"), ObjectNode.class));
        CosmosContainer quoted = make("/\"department name\"", properties -> {});
        quoted.createItem(json("{'id':'1','department name':'x'}"));
        good(200, quoted.readItem("1", new PartitionKey("x"), ObjectNode.class));
    }

    private CosmosContainer tenants() {
        PartitionKeyDefinition definition = new PartitionKeyDefinition();
        definition.setKind(PartitionKind.MULTI_HASH);
        definition.setVersion(PartitionKeyDefinitionVersion.V2);
        definition.setPaths(List.of("/tenant", "/user", "/session"));
        return make(new CosmosContainerProperties(unique("c"), definition));
    }

    private static PartitionKey key(String tenant, double user, boolean session) {
        return new PartitionKeyBuilder().add(tenant).add(user).add(session).build();
    }

    @Test
    void hierarchicalKeys() {
        CosmosContainer tenants = tenants();
        good(201, tenants.createItem(json("{'id':'1','tenant':'t','user':1,'session':true,'v':1}")));
        good(201, tenants.createItem(json("{'id':'1','tenant':'t','user':2,'session':true,'v':2}"), key("t", 2, true), null));
        assertEquals(2, tenants.readItem("1", key("t", 2, true), ObjectNode.class).getItem().get("v").asInt());
        refused(404, 0, () -> tenants.readItem("1", key("t", 2, false), ObjectNode.class));
        good(200, tenants.upsertItem(json("{'id':'1','tenant':'t','user':2,'session':true,'v':3}")));
        good(204, tenants.deleteItem("1", key("t", 1, true), new CosmosItemRequestOptions()));
        assertEquals(List.of("1"), Feed.ids(tenants));
    }

    @Test
    void partOfAHierarchicalKeyNamesNoItem() {
        CosmosContainer tenants = tenants();
        tenants.createItem(json("{'id':'1','tenant':'t','user':1,'session':true}"));
        PartitionKey part = new PartitionKeyBuilder().add("t").build();
        refused(400, 1001, () -> tenants.readItem("1", part, ObjectNode.class));
    }

    @Test
    void levelsOfAHierarchyMayBeNull() {
        CosmosContainer tenants = tenants();
        good(201, tenants.createItem(json("{'id':'1','tenant':'t','user':null,'session':null}")));
        PartitionKey key = new PartitionKeyBuilder().add("t").addNullValue().addNullValue().build();
        good(200, tenants.readItem("1", key, ObjectNode.class));
    }

    @ParameterizedTest
    @EnumSource(PartitionKeyDefinitionVersion.class)
    void keysOfBothHashes(PartitionKeyDefinitionVersion version) {
        CosmosContainer hashed = make(new CosmosContainerProperties(unique("c"), hash(version)));
        PartitionKeyDefinition kept = hashed.read().getProperties().getPartitionKeyDefinition();
        assertEquals(version, kept.getVersion());
        for (var pair : keys().toList()) {
            good(201, hashed.createItem(json("{'id':'1','pk':" + pair.get()[0] + "}")));
            good(200, hashed.readItem("1", (PartitionKey) pair.get()[1], ObjectNode.class));
        }
        assertEquals(keys().count(), Feed.all(hashed).size());
    }

    @Test
    void aLongKeyIsAllowedAndATooLongOneNot() {
        // The SDK makes containers with the first hash unless it is told otherwise.
        assertLongestKey(container, 2048);
        assertLongestKey(make(new CosmosContainerProperties(unique("c"), hash(PartitionKeyDefinitionVersion.V2))), 2048);
    }

    private static void assertLongestKey(CosmosContainer container, int length) {
        good(201, container.createItem(json("{'id':'1'}").put("pk", "x".repeat(length))));
        refused(400, 0, () -> container.createItem(json("{'id':'1'}").put("pk", "x".repeat(length + 1))));
    }

    private static PartitionKeyDefinition hash(PartitionKeyDefinitionVersion version) {
        PartitionKeyDefinition definition = new PartitionKeyDefinition();
        definition.setVersion(version);
        definition.setPaths(List.of("/pk"));
        return definition;
    }

    @Test
    void containersOfOldClientsNeedNoKey() {
        String name = unique("c");
        ByHand.create(Server.shared(), "dbs/" + database.getId(), "colls", "{\"id\":\"" + name + "\"}");
        container = database.getContainer(name);
        PartitionKey none = PartitionKey.NONE;
        good(201, container.createItem(json("{'id':'1','v':1}")));
        assertEquals(1, read("1", none).get("v").asInt());
        good(200, container.replaceItem(json("{'id':'1','v':2}"), "1", none, new CosmosItemRequestOptions()));
        // A newer client may give items of such a container a key.
        good(201, container.createItem(json("{'id':'1','_partitionKey':'a','v':9}")));
        assertEquals(9, read("1", A).get("v").asInt());
        assertEquals(2, read("1", none).get("v").asInt());
        assertEquals(2, Feed.ids(container).size());
        good(204, container.deleteItem("1", none, new CosmosItemRequestOptions()));
        refused(404, 0, () -> read("1", none));
    }
}
