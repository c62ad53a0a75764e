package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.plain;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import perihelion.support.Feed;
import perihelion.support.Scheme;
import perihelion.support.Server;

/** What is left after the server was stopped or killed; the client goes on with what it knew. */
class RestartTest {
    @ParameterizedTest
    @CsvSource({"HTTP,stop", "HTTP,kill", "HTTPS,stop", "HTTPS,kill"})
    void everythingIsThere(Scheme scheme, String end) {
        try (Server server = Server.own(); var client = server.client(scheme)) {
            client.createDatabase("db");
            client.getDatabase("db").createContainer("c", "/pk");
            CosmosContainer container = client.getDatabase("db").getContainer("c");
            for (int number = 0; number < 20; number++) {
                container.createItem(json("{'id':'" + number + "','pk':'k" + number % 5 + "'}"));
            }
            PartitionKey key = new PartitionKey("k3");
            container.replaceItem(json("{'id':'3','pk':'k3','v':'new'}"), "3", key, new CosmosItemRequestOptions());
            container.deleteItem("4", new PartitionKey("k4"), new CosmosItemRequestOptions());
            List<ObjectNode> before = Feed.all(container);
            var first = Feed.pages(container, FeedRange.forFullRange(), null, 6).get(0);
            if (end.equals("stop")) {
                assertEquals(0, server.stop());
            } else {
                server.kill();
            }
            server.start();
            assertEquals(before, Feed.all(container));
            assertEquals(19, before.size());
            List<ObjectNode> resumed = new ArrayList<>(first.getResults());
            Feed.pages(container, FeedRange.forFullRange(), first.getContinuationToken(), 100)
                    .forEach(page -> resumed.addAll(page.getResults()));
            assertEquals(before, resumed);
            ObjectNode changed = good(200, container.readItem("3", key, ObjectNode.class)).getItem();
            assertEquals(json("{'id':'3','pk':'k3','v':'new'}"), plain(changed));
            good(201, container.createItem(json("{'id':'new','pk':'a'}")));
        }
    }
}
