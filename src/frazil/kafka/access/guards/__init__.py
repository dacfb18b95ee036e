"""access/guards: ACLs, enforced around the handlers.

    request ─> guard ─> what is allowed ─> handler ─> response
                 └───── what is not: error codes ───────┘

rules.py        RULES: the guard of each API
checks.py       Guarded: a request with its handler and its sender
topics.py       of topics: Metadata, Produce, Fetch, CreateTopics, ...
groups.py       of groups: JoinGroup, OffsetCommit, DescribeGroups, ...
transactions.py of transactions: InitProducerId, EndTxn, ...
cluster.py      of settings, ACLs, quotas, users

A guard takes out of a request what its sender may not do, calls the handler with the rest, and adds
an error for each part that it has taken out. Handlers know nothing of ACLs.
"""
