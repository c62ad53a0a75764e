package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.data.tables.TableServiceClientBuilder;
import java.io.IOException;
import java.net.ServerSocket;
import org.junit.jupiter.api.Test;
import perihelion.support.Server;

/** The short connection string of emulators, which names the published port of their table service. */
class DevelopmentStorageTest {
    @Test
    void isServedWhereItsPortWasFree() throws IOException {
        TableFixture.azuriteLacks("a port of our choice");
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        try (Server server = Server.own("dev", "--table", "127.0.0.1:" + port)) {
            assertEquals(port, server.tablePort());
            if (!server.screen().contains("UseDevelopmentStorage=true")) {
                assertTrue(server.screen().contains("used by another program"), server::screen);
                return;
            }
            var client = new TableServiceClientBuilder().connectionString("UseDevelopmentStorage=true").buildClient();
            client.createTable("abc").createEntity(TableFixture.row("a", "b", "v", 1));
            assertEquals(1, client.getTableClient("abc").getEntity("a", "b").getProperty("v"));
        }
    }
}
