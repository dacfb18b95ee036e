"""wire/messages: requests, responses and records of Kafka, one class per message.

Generated from the definitions of Apache Kafka 4.2.1 by `python -m tests.kafka.wire.generate`: do
not edit. The descriptions are Kafka's, under the Apache License 2.0; see NOTICE.

produce.py                          Produce, API 0, versions 3-13
fetch.py                            Fetch, API 1, versions 4-18
list_offsets.py                     ListOffsets, API 2, versions 1-11
metadata.py                         Metadata, API 3, versions 0-13
offset_commit.py                    OffsetCommit, API 8, versions 2-10
offset_fetch.py                     OffsetFetch, API 9, versions 1-10
find_coordinator.py                 FindCoordinator, API 10, versions 0-6
join_group.py                       JoinGroup, API 11, versions 0-9
heartbeat.py                        Heartbeat, API 12, versions 0-4
leave_group.py                      LeaveGroup, API 13, versions 0-5
sync_group.py                       SyncGroup, API 14, versions 0-5
describe_groups.py                  DescribeGroups, API 15, versions 0-6
list_groups.py                      ListGroups, API 16, versions 0-5
sasl_handshake.py                   SaslHandshake, API 17, versions 0-1
api_versions.py                     ApiVersions, API 18, versions 0-4
create_topics.py                    CreateTopics, API 19, versions 2-7
delete_topics.py                    DeleteTopics, API 20, versions 1-6
delete_records.py                   DeleteRecords, API 21, versions 0-2
init_producer_id.py                 InitProducerId, API 22, versions 0-6
offset_for_leader_epoch.py          OffsetForLeaderEpoch, API 23, versions 2-4
add_partitions_to_txn.py            AddPartitionsToTxn, API 24, versions 0-5
add_offsets_to_txn.py               AddOffsetsToTxn, API 25, versions 0-4
end_txn.py                          EndTxn, API 26, versions 0-5
txn_offset_commit.py                TxnOffsetCommit, API 28, versions 0-5
describe_acls.py                    DescribeAcls, API 29, versions 1-3
create_acls.py                      CreateAcls, API 30, versions 1-3
delete_acls.py                      DeleteAcls, API 31, versions 1-3
describe_configs.py                 DescribeConfigs, API 32, versions 1-4
alter_configs.py                    AlterConfigs, API 33, versions 0-2
describe_log_dirs.py                DescribeLogDirs, API 35, versions 1-4
sasl_authenticate.py                SaslAuthenticate, API 36, versions 0-2
create_partitions.py                CreatePartitions, API 37, versions 0-3
delete_groups.py                    DeleteGroups, API 42, versions 0-2
incremental_alter_configs.py        IncrementalAlterConfigs, API 44, versions 0-1
offset_delete.py                    OffsetDelete, API 47, versions 0
describe_client_quotas.py           DescribeClientQuotas, API 48, versions 0-1
alter_client_quotas.py              AlterClientQuotas, API 49, versions 0-1
describe_user_scram_credentials.py  DescribeUserScramCredentials, API 50, versions 0
alter_user_scram_credentials.py     AlterUserScramCredentials, API 51, versions 0
describe_cluster.py                 DescribeCluster, API 60, versions 0-2
describe_producers.py               DescribeProducers, API 61, versions 0
describe_transactions.py            DescribeTransactions, API 65, versions 0
list_transactions.py                ListTransactions, API 66, versions 0-2
consumer_group_heartbeat.py         ConsumerGroupHeartbeat, API 68, versions 0-1
consumer_group_describe.py          ConsumerGroupDescribe, API 69, versions 0-1
get_telemetry_subscriptions.py      GetTelemetrySubscriptions, API 71, versions 0
push_telemetry.py                   PushTelemetry, API 72, versions 0
describe_topic_partitions.py        DescribeTopicPartitions, API 75, versions 0
consumer_protocol.py                what members of classic groups tell each other
control_records.py                  the value of a record that ends a transaction
group_records.py                    records of `__consumer_offsets`
transaction_records.py              records of `__transaction_state`
"""
