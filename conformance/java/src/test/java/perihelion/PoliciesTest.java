package perihelion;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ClientEncryptionIncludedPath;
import com.azure.cosmos.models.ClientEncryptionPolicy;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.ConflictResolutionMode;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosClientEncryptionKeyProperties;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosFullTextIndex;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.CosmosVectorIndexSpec;
import com.azure.cosmos.models.CosmosVectorIndexType;
import com.azure.cosmos.models.EncryptionKeyWrapMetadata;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.SpatialSpec;
import com.azure.cosmos.models.SpatialType;
import java.util.List;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Policies that newer features brought, and keys of clients that encrypt. */
class PoliciesTest extends Fixture {
    private static final String ALGORITHM = "AEAD_AES_256_CBC_HMAC_SHA256";

    private static IndexingPolicy indexing() {
        SpatialSpec places = new SpatialSpec().setPath("/loc/*").setSpatialTypes(List.of(SpatialType.POINT, SpatialType.POLYGON));
        return new IndexingPolicy()
                .setIncludedPaths(List.of(new IncludedPath("/*")))
                .setExcludedPaths(List.of(new ExcludedPath("/\"_etag\"/?"), new ExcludedPath("/v/*")))
                .setSpatialIndexes(List.of(places))
                .setVectorIndexes(List.of(
                        new CosmosVectorIndexSpec().setPath("/v").setType(CosmosVectorIndexType.QUANTIZED_FLAT.toString())))
                .setCosmosFullTextIndexes(List.of(new CosmosFullTextIndex().setPath("/text")));
    }

    private static CosmosVectorEmbeddingPolicy vectors() {
        CosmosVectorEmbeddingPolicy policy = new CosmosVectorEmbeddingPolicy();
        policy.setCosmosVectorEmbeddings(List.of(new CosmosVectorEmbedding()
                .setPath("/v")
                .setDataType(CosmosVectorDataType.FLOAT32)
                .setEmbeddingDimensions(16)
                .setDistanceFunction(CosmosVectorDistanceFunction.COSINE)));
        return policy;
    }

    private static CosmosFullTextPolicy texts() {
        CosmosFullTextPath path = new CosmosFullTextPath().setPath("/text").setLanguage("en-US");
        return new CosmosFullTextPolicy().setDefaultLanguage("en-US").setPaths(List.of(path));
    }

    @Test
    void vectorsTextsPlacesAndComputedPropertiesComeBackAndCanBeSentAgain() {
        CosmosContainer made = make("/pk", properties -> properties
                .setIndexingPolicy(indexing())
                .setVectorEmbeddingPolicy(vectors())
                .setFullTextPolicy(texts())
                .setComputedProperties(List.of(new ComputedProperty("lower", "SELECT VALUE LOWER(c.name) FROM c"))));
        for (int round = 0; round < 2; round++) {
            CosmosContainerProperties kept = made.read().getProperties();
            CosmosVectorEmbedding vector = kept.getVectorEmbeddingPolicy().getVectorEmbeddings().get(0);
            assertEquals("/v", vector.getPath());
            assertEquals(CosmosVectorDataType.FLOAT32, vector.getDataType());
            assertEquals(16, vector.getEmbeddingDimensions());
            assertEquals(CosmosVectorDistanceFunction.COSINE, vector.getDistanceFunction());
            assertEquals("en-US", kept.getFullTextPolicy().getPaths().get(0).getLanguage());
            assertEquals("quantizedFlat", kept.getIndexingPolicy().getVectorIndexes().get(0).getType());
            assertEquals("/text", kept.getIndexingPolicy().getCosmosFullTextIndexes().get(0).getPath());
            var spatial = kept.getIndexingPolicy().getSpatialIndexes().get(0);
            assertEquals(List.of(SpatialType.POINT, SpatialType.POLYGON), spatial.getSpatialTypes());
            assertEquals("lower", kept.getComputedProperties().iterator().next().getName());
            assertEquals(200, made.replace(kept.setDefaultTimeToLiveInSeconds(60)).getStatusCode());
        }
    }

    @Test
    void policiesThatContradictEachOtherAreRefused() {
        String name = unique("c");
        var noVectors = new CosmosContainerProperties(name, "/pk").setIndexingPolicy(indexing()).setFullTextPolicy(texts());
        assertTrue(refused(400, 0, () -> database.createContainer(noVectors)).getMessage().contains("Embedding"));
        var noTexts = new CosmosContainerProperties(name, "/pk").setIndexingPolicy(indexing()).setVectorEmbeddingPolicy(vectors());
        assertTrue(refused(400, 0, () -> database.createContainer(noTexts)).getMessage().contains("full-text policy"));
        var reserved = new CosmosContainerProperties(name, "/pk")
                .setComputedProperties(List.of(new ComputedProperty("id", "SELECT VALUE 1 FROM c")));
        assertTrue(refused(400, 0, () -> database.createContainer(reserved)).getMessage().contains("computedProperties"));
    }

    @Test
    void conflictsMayBeLeftToTheClient() {
        CosmosContainer made =
                make("/pk", properties -> properties.setConflictResolutionPolicy(ConflictResolutionPolicy.createCustomPolicy()));
        assertEquals(ConflictResolutionMode.CUSTOM, made.read().getProperties().getConflictResolutionPolicy().getMode());
    }

    @Test
    void keysOfEncryptingClientsAreKept() {
        byte[] wrapped = {1, 2, 3, 4};
        var metadata = new EncryptionKeyWrapMetadata("AZURE_KEY_VAULT", "name", "https://vault/key", "RSA-OAEP");
        String name = unique("key");
        var properties = new CosmosClientEncryptionKeyProperties(name, ALGORITHM, wrapped, metadata);
        try (var asynchronous = Server.shared().builder(scheme).buildAsyncClient()) {
            var mirror = asynchronous.getDatabase(database.getId());
            assertEquals(201, mirror.createClientEncryptionKey(properties).block().getStatusCode());
            refused(409, 0, () -> mirror.createClientEncryptionKey(properties).block());
            var key = mirror.getClientEncryptionKey(name);
            var read = key.read().block().getProperties();
            assertArrayEquals(wrapped, read.getWrappedDataEncryptionKey());
            assertEquals(metadata, read.getEncryptionKeyWrapMetadata());
            var renewed = key.replace(read.setWrappedDataEncryptionKey(new byte[] {9})).block().getProperties();
            assertArrayEquals(new byte[] {9}, renewed.getWrappedDataEncryptionKey());
            var listed = mirror.readAllClientEncryptionKeys().collectList().block();
            assertTrue(listed.stream().anyMatch(found -> found.getId().equals(name)));
            refused(404, 0, () -> mirror.getClientEncryptionKey("none").read().block());
        }
        var path = new ClientEncryptionIncludedPath()
                .setPath("/secret")
                .setClientEncryptionKeyId(name)
                .setEncryptionType("Randomized")
                .setEncryptionAlgorithm(ALGORITHM);
        CosmosContainer sealed =
                make("/pk", with -> with.setClientEncryptionPolicy(new ClientEncryptionPolicy(List.of(path), 2)));
        var kept = sealed.read().getProperties().getClientEncryptionPolicy();
        assertEquals(name, kept.getIncludedPaths().get(0).getClientEncryptionKeyId());
        assertEquals(2, kept.getPolicyFormatVersion());
    }
}
