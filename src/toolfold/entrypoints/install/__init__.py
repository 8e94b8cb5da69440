"""Put toolfold into the configuration of a client, and take it out again."""
