"""The Kafka port, over real sockets and a real log."""
