"""kafka/topics: topics and the cluster, as clients see them.

client_topics.py        ClientTopics: the log's topics as clients see them; those declared as OTLP
topics.py               Topics: Metadata, CreateTopics, DescribeConfigs, DescribeCluster
topic_administration.py TopicAdministration: delete, add partitions, change settings, delete records
topic_configs.py        Kafka's names of the settings of a topic
topic_sizes.py          TopicSizes: DescribeLogDirs
"""
