package perihelion;

import com.azure.spring.data.cosmos.core.mapping.Container;
import com.azure.spring.data.cosmos.core.mapping.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;

/** A document of the walk-through as an entity. */
@Container(containerName = "readings", ru = "12000")
public class Reading {
    @Id
    private String id;

    @PartitionKey
    private String device;

    private String city;
    private double celsius;

    @Version
    private String _etag;

    public Reading() {
    }

    Reading(JsonNode item) {
        id = Walk.text(item, "id");
        device = Walk.text(item, "device");
        city = Walk.text(item, "city");
        celsius = item.get("celsius").asDouble();
    }

    /** The entity as a document of the data. */
    ObjectNode plain() {
        ObjectNode item = Walk.MAPPER.createObjectNode();
        return item.put("id", id).put("device", device).put("city", city).put("celsius", celsius);
    }

    public String getId() {
        return id;
    }

    public void setId(String id) {
        this.id = id;
    }

    public String getDevice() {
        return device;
    }

    public void setDevice(String device) {
        this.device = device;
    }

    public String getCity() {
        return city;
    }

    public void setCity(String city) {
        this.city = city;
    }

    public double getCelsius() {
        return celsius;
    }

    public void setCelsius(double celsius) {
        this.celsius = celsius;
    }

    public String get_etag() {
        return _etag;
    }

    public void set_etag(String _etag) {
        this._etag = _etag;
    }
}
