package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static perihelion.support.Check.eventually;
import static perihelion.support.Check.good;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.Test;
import perihelion.support.Feed;
import perihelion.support.Fixture;

/** Time to live: of the container and of items. */
class ExpiryTest extends Fixture {
    private static boolean isGone(CosmosContainer container, String id) {
        try {
            container.readItem(id, A, ObjectNode.class);
            return false;
        } catch (CosmosException error) {
            return error.getStatusCode() == 404;
        }
    }

    @Test
    void theDefaultOfTheContainerCountsUnlessTheItemSaysOtherwise() {
        CosmosContainer mortal = make("/pk", properties -> properties.setDefaultTimeToLiveInSeconds(1));
        mortal.createItem(json("{'id':'short','pk':'a'}"));
        mortal.createItem(json("{'id':'ever','pk':'a','ttl':-1}"));
        mortal.createItem(json("{'id':'long','pk':'a','ttl':1000}"));
        eventually(() -> isGone(mortal, "short"));
        assertEquals(List.of("ever", "long"), Feed.ids(mortal).stream().sorted().toList());
        good(201, mortal.createItem(json("{'id':'short','pk':'a','ttl':1000}")));
    }

    @Test
    void anItemExpiresWhereTheContainerHasNoDefault() {
        CosmosContainer mortal = make("/pk", properties -> properties.setDefaultTimeToLiveInSeconds(-1));
        mortal.createItem(json("{'id':'short','pk':'a','ttl':1}"));
        mortal.createItem(json("{'id':'ever','pk':'a'}"));
        eventually(() -> isGone(mortal, "short"));
        assertEquals(List.of("ever"), Feed.ids(mortal));
    }

    @Test
    void aTimeToLiveThatIsNoneIsRefused() {
        refused(400, 0, () -> container.createItem(json("{'id':'1','pk':'a','ttl':0}")));
        refused(400, 0, () -> container.createItem(json("{'id':'1','pk':'a','ttl':'x'}")));
    }
}
