"""kafka/groups/consumer: groups whose partitions the server assigns (KIP-848).

    heartbeat ──> requests: may it? ──> targets: who shall own what ──> reconciliation ──> records
                                              │
                                              └── known_topics, assignors

heartbeats.py      ConsumerHeartbeats: ConsumerGroupHeartbeat; what is told is durable
requests.py        what a heartbeat asks for, and whether it may
targets.py         update_target: a new epoch, and its target assignment
assignors.py       assign_uniform, assign_range: pure functions
known_topics.py    KnownTopics: topics by name and by regular expression
reconciliation.py  reconcile: one step of a member to its target; no partition has two owners
sessions.py        MemberSessions: silent members, and those that do not give up partitions
records.py         records of `__consumer_offsets`; ConsumerGroupLoader
offset_checks.py   who may commit and fetch offsets
descriptions.py    ConsumerDescriptions: ConsumerGroupDescribe

The group itself is `ConsumerGroup` in ../consumer_group.py. Everything has one owner, a thread.
"""
