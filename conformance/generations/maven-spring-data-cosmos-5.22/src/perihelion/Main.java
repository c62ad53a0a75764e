package perihelion;

import static perihelion.Walk.check;
import static perihelion.Walk.data;
import static perihelion.Walk.text;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.implementation.HttpConstants;
import com.azure.cosmos.models.PartitionKey;
import com.azure.spring.data.cosmos.config.AbstractCosmosConfiguration;
import com.azure.spring.data.cosmos.core.CosmosTemplate;
import com.azure.spring.data.cosmos.core.query.CosmosPageRequest;
import com.azure.spring.data.cosmos.exception.CosmosAccessException;
import com.azure.spring.data.cosmos.repository.config.EnableCosmosRepositories;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Sort;

/** Spring Data for Azure Cosmos DB: entities, repositories and a template, in gateway mode. */
public final class Main {
    private static final String DATABASE = "spring-data";

    /** What an application configures. */
    @Configuration
    @EnableCosmosRepositories(considerNestedRepositories = true)
    public static class Settings extends AbstractCosmosConfiguration {
        @Bean
        public CosmosClientBuilder clientBuilder() {
            return new CosmosClientBuilder().endpoint(Walk.endpoint()).key(Walk.KEY).gatewayMode();
        }

        @Override
        protected String getDatabaseName() {
            return DATABASE;
        }
    }

    private final Readings readings;
    private final CosmosTemplate template;
    private final CosmosAsyncClient client;

    private Main(AnnotationConfigApplicationContext context) {
        readings = context.getBean(Readings.class);
        template = context.getBean(CosmosTemplate.class);
        client = context.getBean(CosmosAsyncClient.class);
    }

    public static void main(String[] arguments) {
        Walk.through("azure-spring-data-cosmos", HttpConstants.Versions.CURRENT_VERSION, () -> {
            try (var context = new AnnotationConfigApplicationContext(Settings.class)) {
                new Main(context).through();
            }
        });
    }

    private void through() {
        items();
        queries();
        pages();
        replace();
        delete();
        template.deleteContainer(text(data("container"), "id"));
        refused("delete container", 404, () -> readings.count());
        client.getDatabase(DATABASE).delete().block();
    }

    private static void refused(String name, int status, Walk.Through call) {
        ToIntFunction<Throwable> statusOf =
                error -> error instanceof CosmosAccessException known && known.getCosmosException() != null
                        ? known.getCosmosException().getStatusCode()
                        : 0;
        Walk.refused(name, status, statusOf, call);
    }

    private void items() {
        JsonNode wanted = data("container");
        String path = template.getContainerProperties(text(wanted, "id")).getPartitionKeyDefinition().getPaths().get(0);
        check("create container", path, wanted.get("partitionKey"));
        List<JsonNode> made = new ArrayList<>();
        for (JsonNode item : Walk.documents()) {
            made.add(template.insert(text(wanted, "id"), new Reading(item), key(item)).plain());
        }
        check("create items", made, Walk.documents());
        Walk.Through again = () -> template.insert(text(wanted, "id"), new Reading(data("read")), key(data("read")));
        refused("create item twice", 409, again);
        check("read item", read(data("read")).plain(), data("read"));
        JsonNode absent = data("absent");
        check("read absent item", readings.findById(text(absent, "id"), key(absent)).isPresent(), false);
        check("exists by id", readings.existsById(text(data("read"), "id")), true);
        CosmosAsyncContainer container = client.getDatabase(DATABASE).getContainer(text(wanted, "id"));
        Integer throughput = container.readThroughput().block().getProperties().getManualThroughput();
        check("read offer of the annotation", throughput, wanted.get("throughput"));
    }

    private Reading read(JsonNode item) {
        return readings.findById(text(item, "id"), key(item)).orElseThrow();
    }

    private static PartitionKey key(JsonNode item) {
        return new PartitionKey(text(item, "device"));
    }

    private static List<JsonNode> plain(Iterable<Reading> found) {
        return StreamSupport.stream(found.spliterator(), false).map(reading -> (JsonNode) reading.plain()).toList();
    }

    /** The rows of a query in the properties that the data expects. */
    private void checkQuery(String name, Iterable<Reading> found) {
        JsonNode query = query(name);
        List<String> wanted = new ArrayList<>();
        query.get("expected").get(0).fieldNames().forEachRemaining(wanted::add);
        List<JsonNode> rows = new ArrayList<>();
        found.forEach(reading -> rows.add(reading.plain().retain(wanted)));
        Walk.checkQuery(query, rows);
    }

    private static JsonNode query(String name) {
        Stream<JsonNode> named =
                Walk.list(Walk.DATA.get("queries")).stream().filter(query -> text(query, "name").equals(name));
        return named.findFirst().orElseThrow();
    }

    private static JsonNode expected(String name) {
        return query(name).get("expected");
    }

    private void queries() {
        checkQuery("filter by key", readings.findByDevice("rome-2"));
        checkQuery("filter by key without the key in the options", readings.findByDevice("lima-2"));
        checkQuery("fan-out", readings.findByCelsiusGreaterThan(18));
        checkQuery("fan-out with parameters", readings.findByCelsiusLessThanAndCity(6, "Oslo"));
        checkQuery("fan-out with parameters", readings.coldest(6, "Oslo"));
        checkQuery("ORDER BY number", readings.findByCelsiusLessThan(18, Sort.by("celsius")));
        checkQuery("ORDER BY string descending", readings.findAll(Sort.by(Sort.Direction.DESC, "id")));
        checkQuery("TOP with ORDER BY", readings.findTop3ByOrderByCelsiusDesc());
        check("COUNT", List.of(readings.count()), expected("COUNT"));
        check("count by a property", readings.countByCity("Oslo"), 5);
        check("exists by a property", readings.existsByCity("Quito"), false);
        check("SUM", readings.sum(), expected("SUM"));
        check("AVG", readings.average(), expected("AVG"));
    }

    private void pages() {
        Walk.checkInAnyOrder("read feed", plain(readings.findAll()), Walk.DATA.get("documents"));
        List<JsonNode> ofKey = plain(readings.findAll(new PartitionKey("oslo-2")));
        check("read feed of a key", ofKey.size(), data("queryPages").get("expected").size());
        JsonNode wanted = data("feedPages");
        List<List<JsonNode>> pages = new ArrayList<>();
        Pageable request = new CosmosPageRequest(0, wanted.get("size").asInt(), null);
        for (int count = 0; count < Walk.PAGES_MAX; count += 1) {
            Page<Reading> page = readings.findAll(request);
            pages.add(plain(page.getContent()).stream().map(item -> item.get("id")).toList());
            if (!page.hasNext()) {
                break;
            }
            request = page.nextPageable();
        }
        Walk.checkPages("feed in pages", pages, wanted);
    }

    private void replace() {
        Reading stale = read(data("read"));
        Reading reading = read(data("read"));
        reading.setCelsius(data("replaced").get("celsius").asDouble());
        Reading replaced = readings.save(reading);
        check("conditional replace", replaced.plain(), data("replaced"));
        refused("conditional replace of an old version", 412, () -> readings.save(stale));
        check("read replaced item", read(data("replaced")).plain(), data("replaced"));
        check("upsert item", readings.save(new Reading(data("upserted"))).plain(), data("upserted"));
    }

    private void delete() {
        JsonNode deleted = data("deleted");
        readings.deleteById(text(deleted, "id"), key(deleted));
        check("delete item", readings.findById(text(deleted, "id"), key(deleted)).isPresent(), false);
        refused("delete absent item", 404, () -> readings.deleteById(text(deleted, "id"), key(deleted)));
        readings.deleteAll();
        check("delete all items", readings.count(), 0);
    }
}
