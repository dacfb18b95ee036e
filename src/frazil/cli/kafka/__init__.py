"""cli/kafka: what the verbs of the Kafka port share. They work with any Kafka as well.

brokers.py       the brokers that a verb connects to, and their errors
broker_admin.py  BrokerAdmin: topics, settings, offsets and groups
record_input.py  records from lines of text or JSON
sending.py       RecordSender: sends records, counts acknowledgements
receiving.py     RecordReceiver: reads records of a topic, alone or in a group
"""
