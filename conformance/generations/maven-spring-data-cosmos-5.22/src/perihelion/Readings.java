package perihelion;

import com.azure.spring.data.cosmos.repository.CosmosRepository;
import com.azure.spring.data.cosmos.repository.Query;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.springframework.data.domain.Sort;
import org.springframework.data.repository.query.Param;

/** Queries by the names of methods and by text. */
public interface Readings extends CosmosRepository<Reading, String> {
    List<Reading> findByDevice(String device);

    List<Reading> findByCelsiusGreaterThan(double celsius);

    List<Reading> findByCelsiusLessThanAndCity(double celsius, String city);

    List<Reading> findByCelsiusLessThan(double celsius, Sort order);

    List<Reading> findTop3ByOrderByCelsiusDesc();

    long countByCity(String city);

    boolean existsByCity(String city);

    @Query("SELECT * FROM c WHERE c.celsius < @most AND c.city = @city")
    List<Reading> coldest(@Param("most") double most, @Param("city") String city);

    @Query("SELECT VALUE SUM(c.celsius) FROM c")
    List<JsonNode> sum();

    @Query("SELECT VALUE AVG(c.celsius) FROM c")
    List<JsonNode> average();
}
