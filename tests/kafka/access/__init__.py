"""Who may do what on the Kafka port."""
