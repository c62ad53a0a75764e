package perihelion.support;

/** How a client reaches the server. */
public enum Scheme {
    HTTP,
    HTTPS;

    public String text() {
        return name().toLowerCase();
    }
}
