package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Session tokens and consistency levels. */
class SessionTest extends Fixture {
    private static long lsn(String token) {
        return Long.parseLong(token.split("#")[1]);
    }

    @Test
    void tokensGrowWithWrites() {
        String first = container.createItem(json("{'id':'1','pk':'a'}")).getSessionToken();
        String second = container.upsertItem(json("{'id':'1','pk':'a','v':2}")).getSessionToken();
        assertTrue(lsn(second) > lsn(first), () -> first + " then " + second);
        assertEquals(lsn(second), lsn(container.readItem("1", A, ObjectNode.class).getSessionToken()));
    }

    @Test
    void aTokenOfOneClientServesAnother() {
        String token = container.createItem(json("{'id':'1','pk':'a'}")).getSessionToken();
        try (var other = Server.shared().client(scheme)) {
            var options = new CosmosItemRequestOptions().setSessionToken(token);
            var mirror = other.getDatabase(database.getId()).getContainer(container.getId());
            good(200, mirror.readItem("1", A, options, ObjectNode.class));
        }
    }

    @Test
    void aTokenOfTheFutureIsNotServed() {
        String token = container.createItem(json("{'id':'1','pk':'a'}")).getSessionToken();
        String later = token.replaceFirst("#\\d+", "#" + (lsn(token) + 1_000_000));
        var options = new CosmosItemRequestOptions().setSessionToken(later);
        refused(404, 1002, () -> container.readItem("1", A, options, ObjectNode.class));
    }

    @ParameterizedTest
    @EnumSource(value = ConsistencyLevel.class, names = {"SESSION", "CONSISTENT_PREFIX", "EVENTUAL"})
    void weakerLevelsAreAccepted(ConsistencyLevel level) {
        container.createItem(json("{'id':'1','pk':'a'}"));
        try (var weak = Server.shared().builder(scheme).consistencyLevel(level).buildClient()) {
            var mirror = weak.getDatabase(database.getId()).getContainer(container.getId());
            good(200, mirror.readItem("1", A, ObjectNode.class));
        }
    }

    @Test
    void aStrongerLevelThanTheAccountsIsRefused() {
        container.createItem(json("{'id':'1','pk':'a'}"));
        var strong = new CosmosItemRequestOptions().setConsistencyLevel(ConsistencyLevel.STRONG);
        refused(400, 0, () -> container.readItem("1", A, strong, ObjectNode.class));
    }
}
