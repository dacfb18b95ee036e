"""live/registry: confluent-kafka's serializers as clients of a real node."""
