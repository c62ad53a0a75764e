package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static perihelion.support.Check.eventually;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import perihelion.support.Feed;
import perihelion.support.Issuer;
import perihelion.support.Scheme;
import perihelion.support.Server;

/** Keys of an account that write, that only read, that change; and tokens of an identity provider. */
@ParameterizedClass
@EnumSource(Scheme.class)
class CredentialsTest {
    private static final PartitionKey A = new PartitionKey("a");
    private static final ObjectNode ITEM = json("{'id':'1','pk':'a'}");

    @Parameter
    Scheme scheme;

    private static void fill(CosmosClient client) {
        client.createDatabase("db");
        client.getDatabase("db").createContainer("c", "/pk");
        container(client).createItem(ITEM);
    }

    private static CosmosContainer container(CosmosClient client) {
        return client.getDatabase("db").getContainer("c");
    }

    /** The refusal that a client meets while it is made: it reads the account first. */
    private static String refusal(CosmosClientBuilder builder) {
        Throwable cause = assertThrows(RuntimeException.class, builder::buildClient).getCause();
        CosmosException error = assertInstanceOf(CosmosException.class, cause);
        return error.getStatusCode() + "/" + error.getSubStatusCode();
    }

    @Test
    void readOnlyKeysReadAndDoNotWrite() {
        try (var server = Server.own("serve");
                var owner = server.builder(scheme).key(server.keys("show", "primary")).buildClient()) {
            fill(owner);
            for (String name : List.of("primary-readonly", "secondary-readonly")) {
                try (var reader = server.builder(scheme).key(server.keys("show", name)).buildClient()) {
                    CosmosContainer items = container(reader);
                    assertEquals(200, items.readItem("1", A, ObjectNode.class).getStatusCode());
                    assertEquals(List.of("1"), Feed.ids(items));
                    assertEquals("db", reader.readAllDatabases().iterator().next().getId());
                    refused(403, 0, () -> items.upsertItem(ITEM));
                    refused(403, 0, () -> items.deleteItem("1", A, null));
                    CosmosBatch batch = CosmosBatch.createCosmosBatch(A);
                    batch.upsertItemOperation(ITEM);
                    refused(403, 0, () -> items.executeCosmosBatch(batch));
                    refused(403, 0, () -> reader.createDatabase("other"));
                    refused(403, 0, items::delete);
                }
            }
            try (var second = server.builder(scheme).key(server.keys("show", "secondary")).buildClient()) {
                assertEquals(200, container(second).upsertItem(ITEM).getStatusCode());
            }
            assertEquals("401/0", refusal(server.builder(scheme)), "the well-known key opens nothing here");
        }
    }

    @Test
    void aRotatedKeyIsRefusedAndTheOtherGoesOn() {
        try (var server = Server.own("serve");
                var leaves = server.builder(scheme).key(server.keys("show", "primary")).buildClient();
                var stays = server.builder(scheme).key(server.keys("show", "secondary")).buildClient()) {
            fill(leaves);
            server.keys("rotate", "primary");
            eventually(() -> {
                assertEquals(200, container(stays).readItem("1", A, ObjectNode.class).getStatusCode());
                try {
                    container(leaves).readItem("1", A, ObjectNode.class);
                    return false;
                } catch (CosmosException error) {
                    assertEquals(401, error.getStatusCode());
                    return true;
                }
            });
            try (var renewed = server.builder(scheme).key(server.keys("show", "primary")).buildClient()) {
                assertEquals(200, container(renewed).upsertItem(ITEM).getStatusCode());
            }
        }
    }

    @Test
    void tokensHaveTheRightsOfTheirHolder(@TempDir Path folder) throws IOException {
        Issuer issuer = new Issuer();
        Files.writeString(folder.resolve("keys.json"), issuer.keySet());
        Path identity = Files.writeString(folder.resolve("identity.toml"), """
                issuer = "%s"
                audiences = ["%s"]
                jwks-file = "keys.json"
                algorithms = ["RS256"]
                assignments = [
                    { principal = "reader", role = "reader", scope = "/dbs/db" },
                    { principal = "writer", role = "contributor", scope = "/dbs/db/colls/c" },
                ]
                """.formatted(Issuer.NAME, Issuer.AUDIENCE));
        try (var server = Server.own("dev", "--identity", identity.toString());
                var owner = server.client(scheme);
                var reader = server.builder(scheme).credential(issuer.credential("reader")).buildClient();
                var writer = server.builder(scheme).credential(issuer.credential("writer")).buildClient()) {
            fill(owner);
            for (CosmosClient client : List.of(reader, writer)) {
                assertEquals(200, container(client).readItem("1", A, ObjectNode.class).getStatusCode());
                assertEquals(List.of("1"), Feed.ids(container(client)));
                refused(403, 5300, () -> client.createDatabase("other"));
                refused(403, 5301, () -> client.readAllDatabases().iterator().next());
            }
            refused(403, 5302, () -> container(reader).upsertItem(ITEM));
            refused(403, 5302, () -> container(reader).deleteItem("1", A, null));
            assertEquals(200, container(writer).upsertItem(ITEM).getStatusCode());
            assertEquals("403/5301", refusal(server.builder(scheme).credential(issuer.credential("nobody"))));
            assertEquals("401/5004", refusal(server.builder(scheme).credential(new Issuer().credential("reader"))));
        }
    }
}
