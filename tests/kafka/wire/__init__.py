"""Codecs of Kafka's messages, judged by Kafka's own Java classes.

definitions.py   Kafka's definitions of messages, read from its jars
generate.py      the command that writes `src/frazil/kafka/wire/messages`
examples.py      random messages of one version
java.py          Kafka's own classes, in a JVM
"""
