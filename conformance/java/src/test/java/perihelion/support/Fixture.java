package perihelion.support;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** The shared server over plain HTTP and TLS, one client and one database per scheme, one container per test. */
@ParameterizedClass
@EnumSource(Scheme.class)
public abstract class Fixture {
    /** The key that most items have. */
    protected static final PartitionKey A = new PartitionKey("a");

    private static final Map<Scheme, CosmosClient> CLIENTS = new EnumMap<>(Scheme.class);
    private static final Map<Scheme, CosmosDatabase> DATABASES = new EnumMap<>(Scheme.class);

    @Parameter
    protected Scheme scheme;

    protected CosmosClient client;
    protected CosmosDatabase database;
    /** An empty container with the key path /pk. */
    protected CosmosContainer container;

    @BeforeEach
    void connect() {
        // Clients are made once, since each reads the account and opens connections; they end with the program.
        client = CLIENTS.computeIfAbsent(scheme, Server.shared()::client);
        database = DATABASES.computeIfAbsent(scheme, scheme -> {
            String name = Check.unique("db");
            client.createDatabase(name);
            return client.getDatabase(name);
        });
        container = make("/pk", properties -> {});
    }

    /** A new container with this key path. */
    protected CosmosContainer make(String path, Consumer<CosmosContainerProperties> change) {
        CosmosContainerProperties properties = new CosmosContainerProperties(Check.unique("c"), path);
        change.accept(properties);
        return make(properties);
    }

    protected CosmosContainer make(CosmosContainerProperties properties) {
        database.createContainer(properties);
        return database.getContainer(properties.getId());
    }

    protected ObjectNode read(String id, PartitionKey key) {
        return container.readItem(id, key, ObjectNode.class).getItem();
    }
}
