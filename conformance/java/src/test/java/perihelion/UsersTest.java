package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ContainerChildResourceType;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.PermissionMode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import perihelion.support.Feed;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Users, their permissions (which the SDK has in its asynchronous half only), and clients that hold permissions. */
class UsersTest extends Fixture {
    private static final PartitionKey B = new PartitionKey("b");

    private CosmosAsyncClient asynchronous;
    private CosmosAsyncUser user;

    @BeforeEach
    void makeUser() {
        asynchronous = Server.shared().builder(scheme).buildAsyncClient();
        String name = unique("user");
        database.createUser(new CosmosUserProperties().setId(name));
        user = asynchronous.getDatabase(database.getId()).getUser(name);
        container.createItem(json("{'id':'1','pk':'a'}"));
        container.createItem(json("{'id':'1','pk':'b'}"));
    }

    @AfterEach
    void close() {
        user.delete().block();
        asynchronous.close();
    }

    private CosmosPermissionProperties permission(PermissionMode mode) {
        return new CosmosPermissionProperties()
                .setId(unique("permission"))
                .setContainerName(container.getId())
                .setPermissionMode(mode);
    }

    private CosmosPermissionProperties granted(CosmosPermissionProperties permission) {
        return user.createPermission(permission, null).block().getProperties();
    }

    /**
     * A client that sends the permission's token with everything. Given permissions instead of a token, the SDK looks up
     * a token for each request, and finds none when it asks for a container's ranges by RID.
     */
    private CosmosClient holder(CosmosPermissionProperties permission) {
        return Server.shared().builder(scheme).resourceToken(permission.getToken()).buildClient();
    }

    private CosmosContainer seenBy(CosmosClient client) {
        return client.getDatabase(database.getId()).getContainer(container.getId());
    }

    @Test
    void usersAreCreatedReadRenamedListedAndDeleted() {
        String name = unique("user");
        CosmosUserProperties properties = new CosmosUserProperties().setId(name);
        var created = database.createUser(properties);
        assertEquals(201, created.getStatusCode());
        assertEquals(created.getProperties().getETag(), database.getUser(name).read().getProperties().getETag());
        refused(409, 0, () -> database.createUser(properties));
        assertEquals(200, database.upsertUser(properties).getStatusCode());
        String renamed = unique("renamed");
        var replaced = database.getUser(name).replace(created.getProperties().setId(renamed));
        assertEquals(renamed, replaced.getProperties().getId());
        refused(404, 0, () -> database.getUser(name).read());
        assertTrue(database.readAllUsers().stream().anyMatch(found -> found.getId().equals(renamed)));
        assertEquals(204, database.getUser(renamed).delete().getStatusCode());
        refused(404, 0, () -> database.getUser(renamed).delete());
    }

    @Test
    void permissionsAreCreatedReadReplacedListedAndDeleted() {
        CosmosPermissionProperties body = permission(PermissionMode.READ);
        var created = user.createPermission(body, null).block();
        assertEquals(201, created.getStatusCode());
        CosmosPermissionProperties kept = created.getProperties();
        assertTrue(kept.getToken().startsWith("type=resource&ver=1"));
        var read = user.getPermission(kept.getId()).read(null).block().getProperties();
        assertEquals(kept.getETag(), read.getETag());
        assertEquals(container.getId(), read.getContainerName());
        refused(409, 0, () -> user.createPermission(permission(PermissionMode.ALL), null).block());
        var replaced = user.getPermission(kept.getId())
                .replace(read.setPermissionMode(PermissionMode.ALL), null)
                .block()
                .getProperties();
        assertEquals(PermissionMode.ALL, replaced.getPermissionMode());
        assertNotEquals(kept.getETag(), replaced.getETag());
        assertEquals(200, user.upsertPermission(body, null).block().getStatusCode());
        var listed = user.readAllPermissions().collectList().block();
        assertEquals(List.of(kept.getId()), listed.stream().map(CosmosPermissionProperties::getId).toList());
        assertEquals(204, user.getPermission(kept.getId()).delete(null).block().getStatusCode());
        refused(404, 0, () -> user.getPermission(kept.getId()).read(null).block());
        var nowhere = permission(PermissionMode.READ).setContainerName("nothing");
        assertEquals(201, user.createPermission(nowhere, null).block().getStatusCode());
    }

    @Test
    void aReaderOfAContainerReadsAndDoesNotWrite() {
        try (var reader = holder(granted(permission(PermissionMode.READ)))) {
            CosmosContainer seen = seenBy(reader);
            assertEquals("b", seen.readItem("1", B, ObjectNode.class).getItem().get("pk").asText());
            assertEquals(2, Feed.ids(seen).size());
            assertEquals(container.getId(), seen.read().getProperties().getId());
            refused(404, 0, () -> seen.readItem("2", A, ObjectNode.class));
            refused(403, 0, () -> seen.createItem(json("{'id':'2','pk':'a'}")));
            refused(403, 0, () -> seen.upsertItem(json("{'id':'1','pk':'a'}")));
            refused(403, 0, () -> seen.deleteItem("1", A, null));
            refused(403, 0, seen::delete);
        }
        assertEquals(2, Feed.ids(container).size());
    }

    @Test
    void aWriterOfOneKeyStaysInsideIt() {
        try (var writer = holder(granted(permission(PermissionMode.ALL).setResourcePartitionKey(A)))) {
            CosmosContainer seen = seenBy(writer);
            assertEquals(201, seen.createItem(json("{'id':'2','pk':'a'}")).getStatusCode());
            assertEquals(200, seen.replaceItem(json("{'id':'2','pk':'a','v':1}"), "2", A, null).getStatusCode());
            assertEquals(204, seen.deleteItem("2", A, null).getStatusCode());
            refused(403, 0, () -> seen.readItem("1", B, ObjectNode.class));
            refused(403, 0, () -> seen.createItem(json("{'id':'2','pk':'b'}")));
        }
    }

    @Test
    void aTenantStaysInsideThePrefixOfItsKey() {
        PartitionKeyDefinition definition = new PartitionKeyDefinition()
                .setPaths(List.of("/tenant", "/user"))
                .setKind(PartitionKind.MULTI_HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2);
        container = make(new CosmosContainerProperties(unique("c"), definition));
        container.createItem(json("{'id':'1','tenant':'x','user':1}"));
        container.createItem(json("{'id':'1','tenant':'y','user':1}"));
        PartitionKey own = new PartitionKeyBuilder().add("x").add(1).build();
        PartitionKey foreign = new PartitionKeyBuilder().add("y").add(1).build();
        var tenant = permission(PermissionMode.ALL).setResourcePartitionKey(new PartitionKey("x"));
        try (var writer = holder(granted(tenant))) {
            CosmosContainer seen = seenBy(writer);
            assertEquals(200, seen.readItem("1", own, ObjectNode.class).getStatusCode());
            assertEquals(201, seen.createItem(json("{'id':'2','tenant':'x','user':2}")).getStatusCode());
            refused(403, 0, () -> seen.readItem("1", foreign, ObjectNode.class));
            refused(403, 0, () -> seen.upsertItem(json("{'id':'2','tenant':'y','user':2}")));
        }
    }

    @Test
    void anItemIsSharedAlone() {
        container.createItem(json("{'id':'2','pk':'a'}"));
        var shared = permission(PermissionMode.ALL)
                .setResourcePath(ContainerChildResourceType.ITEM, "1")
                .setResourcePartitionKey(A);
        try (var guest = holder(granted(shared))) {
            CosmosContainer seen = seenBy(guest);
            assertEquals(200, seen.replaceItem(json("{'id':'1','pk':'a','v':1}"), "1", A, null).getStatusCode());
            assertEquals(1, seen.readItem("1", A, ObjectNode.class).getItem().get("v").asInt());
            refused(403, 0, () -> seen.readItem("2", A, ObjectNode.class));
            refused(403, 0, () -> seen.readItem("1", B, ObjectNode.class));
            refused(403, 0, () -> seen.createItem(json("{'id':'3','pk':'a'}")));
        }
    }

    @Test
    void aTokenReachesNoOtherContainerWhetherItExistsOrNot() {
        CosmosContainer other = make("/pk", properties -> {});
        other.createItem(json("{'id':'1','pk':'a'}"));
        try (var stranger = holder(granted(permission(PermissionMode.ALL)))) {
            for (String name : List.of(other.getId(), "absent")) {
                CosmosContainer seen = stranger.getDatabase(database.getId()).getContainer(name);
                refused(403, 0, seen::read);
                refused(403, 0, () -> seen.readItem("1", A, ObjectNode.class));
            }
        }
    }

    @Test
    void aTokenEndsWhenItsPermissionIsReplacedOrDeleted() {
        var first = granted(permission(PermissionMode.ALL));
        try (var writer = holder(first)) {
            CosmosContainer seen = seenBy(writer);
            assertEquals(200, seen.upsertItem(json("{'id':'1','pk':'a'}")).getStatusCode());
            CosmosPermissionProperties known = user.getPermission(first.getId()).read(null).block().getProperties();
            var second = user.getPermission(first.getId())
                    .replace(known.setPermissionMode(PermissionMode.READ), null)
                    .block()
                    .getProperties();
            refused(403, 0, () -> seen.readItem("1", A, ObjectNode.class));
            try (var reader = holder(second)) {
                assertEquals(200, seenBy(reader).readItem("1", A, ObjectNode.class).getStatusCode());
                user.getPermission(first.getId()).delete(null).block();
                refused(403, 0, () -> seenBy(reader).readItem("1", A, ObjectNode.class));
            }
        }
    }
}
