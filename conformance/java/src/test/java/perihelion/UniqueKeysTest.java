package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;

/** Unique keys: once in a logical partition, whatever operation writes them. */
class UniqueKeysTest extends Fixture {
    private CosmosContainer strict;

    @BeforeEach
    void constraint() {
        UniqueKeyPolicy policy = new UniqueKeyPolicy();
        policy.setUniqueKeys(List.of(new UniqueKey(List.of("/mail")), new UniqueKey(List.of("/a", "/b/c"))));
        strict = make("/pk", properties -> properties.setUniqueKeyPolicy(policy));
    }

    private static ObjectNode item(String id, String mail) {
        return json("{'id':'" + id + "','pk':'a','mail':'" + mail + "','a':'" + id + "'}");
    }

    @Test
    void equalValuesCollideInOnePartition() {
        good(201, strict.createItem(item("1", "x")));
        refused(409, 0, () -> strict.createItem(item("2", "x")));
        good(201, strict.createItem(item("2", "x").put("pk", "b")));
    }

    @Test
    void everyOperationIsHeldToIt() {
        strict.createItem(item("1", "x"));
        strict.createItem(item("2", "y"));
        refused(409, 0, () -> strict.replaceItem(item("2", "x"), "2", A, new CosmosItemRequestOptions()));
        refused(409, 0, () -> strict.upsertItem(item("2", "x")));
        refused(409, 0, () -> strict.patchItem("2", A, CosmosPatchOperations.create().set("/mail", "x"), ObjectNode.class));
        assertEquals("y", strict.readItem("2", A, ObjectNode.class).getItem().get("mail").asText());
    }

    @Test
    void aValueIsFreeAgainWhenItsItemGoes() {
        strict.createItem(item("1", "x"));
        strict.deleteItem("1", A, new CosmosItemRequestOptions());
        good(201, strict.createItem(item("2", "x")));
        good(200, strict.replaceItem(item("2", "z"), "2", A, new CosmosItemRequestOptions()));
        good(201, strict.createItem(item("3", "x")));
    }

    @Test
    void severalPathsCollideOnlyTogether() {
        strict.createItem(json("{'id':'1','pk':'a','mail':1,'a':1,'b':{'c':1}}"));
        good(201, strict.createItem(json("{'id':'2','pk':'a','mail':2,'a':1,'b':{'c':2}}")));
        refused(409, 0, () -> strict.createItem(json("{'id':'3','pk':'a','mail':3,'a':1,'b':{'c':1}}")));
    }
}
