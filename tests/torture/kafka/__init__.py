"""torture/kafka: the whole Kafka port over a simulated disk, network and clock.

    loop.py            SimLoop: an event loop whose time and disk are simulated
    network.py         Wire: a connection that loses, delays and repeats
    node.py            SimNode: log and port, started, killed and started again
    clients.py         what client libraries do: retries, idempotent producers
    transactional.py   transactional producers, consume-transform-produce
    members.py         members of a group, topics made and deleted
    history.py         what clients sent, and what they were told
    judge.py           compares that with everything that can be read
    sim.py             one seed: a cluster of clients, some lives of a node
    mutants.py         bugs put in on purpose
    live.py            a real node, librdkafka, a proxy that loses responses
    tables.py          `frazil appender` and keyed tables of a real Kafka, killed at random

The port's own code is what runs: `KafkaPort.open`, `KafkaConnection`, the codecs. Only sockets,
threads, time, randomness and the disk are replaced.
"""
