"""kafka/groups: consumer groups and their offsets.

There are two kinds: in a classic group one of the members assigns the partitions, in the others the
server does (KIP-848).

    port ──> handlers ──> coordinator ──> journal ──> `__consumer_offsets`
                 ^             │ replies     │ durable
                 └─────────────┴─────────────┘

handlers.py        GroupHandlers: the APIs, on the event loop
coordinator.py     GroupCoordinator: all of the below together; synchronous, one owner
membership.py      Membership: JoinGroup, LeaveGroup of classic groups
assignment.py      Assignment: SyncGroup, Heartbeat of classic groups
rebalance.py       Rebalance: from one generation of a classic group to the next
offset_commits.py  OffsetCommits: OffsetCommit, TxnOffsetCommit, end of a transaction
offset_queries.py  OffsetQueries: OffsetFetch
administration.py  Administration: DescribeGroups, ListGroups, DeleteGroups, OffsetDelete
expiry.py          Expiry: forgets old offsets and empty groups
lag.py             GroupLag, RecentLag: how far groups are behind
description.py     consumer_groups: what the API shows of groups
loader.py          load: reads the topic at start
groups.py          Groups: all groups by id
consumer/          groups whose partitions the server assigns: heartbeats, assignors, records
consumer_group.py  ConsumerGroup: such a group, its members and who owns what
offsets.py         OffsetStore: committed offsets, and those of open transactions
group.py           ClassicGroup: members, generation, state
member.py          Member: one consumer
records.py         records of the topic, in Kafka's format
journal.py         Journal: appends to the topic
timers.py          GroupTimers: what is to be done later
alarm.py           Alarm: runs timers on the event loop
errors.py          the code for records that were not stored
"""
