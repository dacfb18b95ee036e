"""kafka/transactions: the transaction coordinator.

    port ──> handlers ──> coordinator ──> journal ──> `__transaction_state`
                 ^             │ replies     │ durable
                 └─────────────┴─────────────┘        markers ──> partitions, `__consumer_offsets`

handlers.py           TransactionHandlers: the APIs, on the event loop
coordinator.py        TransactionCoordinator: all of the below together; synchronous, one owner
initialization.py     Initialization: InitProducerId
participation.py      Participation: AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, batches
completion.py         Completion: EndTxn, timeouts
markers.py            MarkerWriter: markers into all partitions of a transaction
queries.py            TransactionQueries: DescribeTransactions, ListTransactions
partition_producers.py  DescribeProducers
expiry.py             IdExpiry: forgets unused transactional ids
loader.py             load: reads the topic at start
transactional_ids.py  TransactionalIds: all ids, and how they change
metadata.py           TransactionMetadata: one id, and its states
records.py            records of the topic, in Kafka's format
"""
