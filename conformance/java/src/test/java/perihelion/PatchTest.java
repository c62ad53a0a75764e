package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.plain;
import static perihelion.support.Check.refused;

import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;

/** Patch: six operations, refusals, all or nothing. */
class PatchTest extends Fixture {
    private static CosmosPatchOperations patch() {
        return CosmosPatchOperations.create();
    }

    private ObjectNode apply(CosmosPatchOperations operations) {
        return plain(good(200, container.patchItem("1", A, operations, ObjectNode.class)).getItem());
    }

    @BeforeEach
    void item() {
        container.createItem(json("{'id':'1','pk':'a','n':1,'s':'text','l':[1,2,3],'o':{'x':1}}"));
    }

    @Test
    void allSixOperationsInOrder() {
        ObjectNode after = apply(patch().add("/l/0", 0).add("/l/-", 4).set("/new", Map.of("deep", List.of(1)))
                .replace("/n", 5).increment("/n", 2L).increment("/n", 0.5).remove("/s").move("/o/x", "/y"));
        assertEquals(json("{'id':'1','pk':'a','n':7.5,'l':[0,1,2,3,4],'o':{},'new':{'deep':[1]},'y':1}"), after);
        assertEquals(after, plain(read("1", A)));
    }

    @Test
    void nullIsAValue() {
        assertEquals(true, apply(patch().set("/n", null)).get("n").isNull());
    }

    @Test
    void aRefusedOperationChangesNothing() {
        ObjectNode before = read("1", A);
        for (CosmosPatchOperations bad : List.of(
                patch().set("/first", 1).remove("/none"),
                patch().set("/first", 1).replace("/none", 1),
                patch().set("/first", 1).add("/l/9", 1),
                patch().set("/first", 1).increment("/s", 1L),
                patch().set("/first", 1).set("/id", "2"),
                patch().set("/first", 1).set("/pk", "b"),
                patch().set("/first", 1).set("/_ts", 1),
                patch().set("/first", 1).move("/none", "/x"))) {
            refused(400, 0, () -> apply(bad));
        }
        assertEquals(before, read("1", A));
    }

    @Test
    void tenOperationsAreAllowedAndElevenNot() {
        CosmosPatchOperations ten = patch();
        for (int count = 0; count < 10; count++) {
            ten.increment("/n", 1L);
        }
        assertEquals(11, apply(ten).get("n").asInt());
        refused(400, 0, () -> apply(ten.increment("/n", 1L)));
    }

    @Test
    void whatIsAbsentCannotBePatched() {
        refused(404, 0, () -> container.patchItem("2", A, patch().set("/n", 1), ObjectNode.class));
    }

    @Test
    void aPatchIsDoneIfItsConditionHolds() {
        var holds = new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.n = 1");
        good(200, container.patchItem("1", A, patch().set("/n", 2), holds, ObjectNode.class));
        refused(412, 0, () -> container.patchItem("1", A, patch().set("/n", 3), holds, ObjectNode.class));
        var none = new CosmosPatchItemRequestOptions().setFilterPredicate("where c.n = 2");
        refused(400, 0, () -> container.patchItem("1", A, patch().set("/n", 3), none, ObjectNode.class));
        assertEquals(2, read("1", A).get("n").asInt());
    }

    @Test
    void aPatchMayLeaveTheItemOut() {
        var minimal = new CosmosPatchItemRequestOptions();
        minimal.setContentResponseOnWriteEnabled(false);
        assertNull(good(200, container.patchItem("1", A, patch().set("/n", 2), minimal, ObjectNode.class)).getItem());
        assertEquals(2, read("1", A).get("n").asInt());
    }

    @Test
    void unusualNamesArePatched() {
        assertEquals(1, apply(patch().set("/a~1b~0c", 1)).get("a/b~c").asInt());
        assertFalse(apply(patch().set("/schlüssel", "wört")).get("schlüssel").isNull());
    }
}
