package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.core.credential.AzureKeyCredential;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.Http2ConnectionConfig;
import java.util.Base64;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Keys: the right one, a wrong one, one that changes; and the protocol underneath. */
class AccessTest extends Fixture {
    private static final String WRONG = Base64.getEncoder().encodeToString(new byte[64]);

    @Test
    void aWrongKeyIsRefusedAtOnce() {
        var builder = Server.shared().builder(scheme).key(WRONG);
        // The client reads the account before it exists, and wraps what it hears.
        Throwable cause = assertThrows(RuntimeException.class, builder::buildClient).getCause();
        CosmosException error = assertInstanceOf(CosmosException.class, cause);
        assertEquals(401, error.getStatusCode());
        assertTrue(error.getMessage().contains("authorization token"), error::getMessage);
    }

    @Test
    void aKeyThatBecomesWrongIsRefusedAndMayBecomeRightAgain() {
        AzureKeyCredential credential = new AzureKeyCredential(Server.KEY);
        try (var changing = Server.shared().builder(scheme).credential(credential).buildClient()) {
            var mirror = changing.getDatabase(database.getId()).getContainer(container.getId());
            mirror.createItem(json("{'id':'1','pk':'a'}"));
            credential.update(WRONG);
            refused(401, 0, () -> mirror.createItem(json("{'id':'2','pk':'a'}")));
            refused(401, 0, () -> mirror.readItem("1", A, Object.class));
            credential.update(Server.KEY);
            mirror.createItem(json("{'id':'2','pk':'a'}"));
        }
        assertEquals("2", read("2", A).get("id").asText());
    }

    @Test
    void theSecondVersionOfHttpIsSpoken() {
        var second = new GatewayConnectionConfig().setHttp2ConnectionConfig(new Http2ConnectionConfig().setEnabled(true));
        try (var multiplexed = Server.shared().builder(scheme).gatewayMode(second).buildClient()) {
            var mirror = multiplexed.getDatabase(database.getId()).getContainer(container.getId());
            mirror.createItem(json("{'id':'1','pk':'a'}"));
            assertEquals(200, mirror.readItem("1", A, Object.class).getStatusCode());
        }
    }
}
