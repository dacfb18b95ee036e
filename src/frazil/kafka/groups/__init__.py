"""kafka/groups: consumer groups and their offsets.

    port ──> handlers ──> coordinator ──> journal ──> `__consumer_offsets`
                 ^             │ replies     │ durable
                 └─────────────┴─────────────┘

handlers.py        GroupHandlers: the APIs, on the event loop
coordinator.py     GroupCoordinator: all of the below together; synchronous, one owner
membership.py      Membership: JoinGroup, LeaveGroup
assignment.py      Assignment: SyncGroup, Heartbeat
rebalance.py       Rebalance: from one generation to the next
offset_commits.py  OffsetCommits: OffsetCommit, TxnOffsetCommit, end of a transaction
offset_queries.py  OffsetQueries: OffsetFetch
administration.py  Administration: DescribeGroups, ListGroups, DeleteGroups, OffsetDelete
expiry.py          Expiry: forgets old offsets and empty groups
lag.py             GroupLag, RecentLag: how far groups are behind
description.py     consumer_groups: what the API shows of groups
loader.py          load: reads the topic at start
groups.py          Groups: all groups by id
offsets.py         OffsetStore: committed offsets, and those of open transactions
group.py           ClassicGroup: members, generation, state
member.py          Member: one consumer
records.py         records of the topic, in Kafka's format
journal.py         Journal: appends to the topic
timers.py          GroupTimers: what is to be done later
alarm.py           Alarm: runs timers on the event loop
errors.py          the code for records that were not stored
"""
