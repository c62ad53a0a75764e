package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import java.util.List;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;

/** Throughput, which the client finds by a query over offers; queries over databases and containers. */
class ThroughputTest extends Fixture {
    private CosmosContainer make(ThroughputProperties throughput) {
        var properties = new CosmosContainerProperties(unique("c"), "/pk");
        database.createContainer(properties, throughput);
        return database.getContainer(properties.getId());
    }

    @Test
    void throughputOfAContainerIsReadAndReplaced() {
        CosmosContainer made = make(ThroughputProperties.createManualThroughput(1000));
        assertEquals(1000, made.readThroughput().getProperties().getManualThroughput());
        assertEquals(1200, made.replaceThroughput(ThroughputProperties.createManualThroughput(1200)).getProperties().getManualThroughput());
        assertEquals(1200, made.readThroughput().getProperties().getManualThroughput());
        refused(400, 0, () -> made.replaceThroughput(ThroughputProperties.createManualThroughput(350)));
        assertEquals(400, container.readThroughput().getProperties().getManualThroughput());
    }

    @Test
    void autoscaleThroughputIsReadAndReplaced() {
        CosmosContainer made = make(ThroughputProperties.createAutoscaledThroughput(4000));
        assertEquals(4000, made.readThroughput().getProperties().getAutoscaleMaxThroughput());
        made.replaceThroughput(ThroughputProperties.createAutoscaledThroughput(6000));
        assertEquals(6000, made.readThroughput().getProperties().getAutoscaleMaxThroughput());
    }

    @Test
    void throughputOfADatabaseIsShared() {
        String name = unique("db");
        client.createDatabase(name, ThroughputProperties.createManualThroughput(800));
        var shared = client.getDatabase(name);
        assertEquals(800, shared.readThroughput().getProperties().getManualThroughput());
        shared.replaceThroughput(ThroughputProperties.createManualThroughput(900));
        assertEquals(900, shared.readThroughput().getProperties().getManualThroughput());
        shared.delete();
    }

    @Test
    void databasesAndContainersAreQueried() {
        String id = container.getId();
        var spec = new SqlQuerySpec("SELECT * FROM root r WHERE r.id = @id", List.of(new SqlParameter("@id", id)));
        var containers = database.queryContainers(spec).stream().map(CosmosContainerProperties::getId).toList();
        assertEquals(List.of(id), containers);
        var text = "SELECT * FROM c WHERE c.id = '" + database.getId() + "'";
        assertEquals(1, client.queryDatabases(text, null).stream().count());
        refused(400, 0, () -> client.queryDatabases("SELECT", null).stream().toList());
    }
}
