"""Tests that pass on Apache Kafka and may fail or be skipped here: by judge and name, with why."""

from __future__ import annotations

ACLS = "there are no ACLs"
GROUP_SETTINGS = "groups have no settings of their own"
KIP_848 = "groups whose partitions the server assigns (KIP-848) are not supported"
SCRAM = "there is no SCRAM"
SHARE_GROUPS = "share groups are not supported"
NODE_SETTINGS = "settings of the node are in frazil.toml, and no client can change them"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "librdkafka": {
        "0081_admin/do_test_AlterConfigs": NODE_SETTINGS,
        "0081_admin/do_test_IncrementalAlterConfigs": NODE_SETTINGS,
        "0081_admin/do_test_DescribeConfigs_groups": GROUP_SETTINGS,
        "0081_admin/do_test_CreateAcls": ACLS,
        "0081_admin/do_test_DescribeAcls": ACLS,
        "0081_admin/do_test_DeleteAcls": ACLS,
        "0081_admin/do_test_UserScramCredentials": SCRAM,
        "0109_auto_create_topics": ACLS,
        "0115_producer_auth": ACLS,
        "0119_consumer_auth": ACLS,
    },
    "franz-go": {
        "TestConsumeRegexShareSkipsInternal": SHARE_GROUPS,
        "TestShareGroup": SHARE_GROUPS,
        "TestShareGroupETL": SHARE_GROUPS,
        "TestShareGroupAckOnClose": SHARE_GROUPS,
        "TestShareGroupOffsetsAdmin": SHARE_GROUPS,
        "Test848RegexBrokerResolves": KIP_848,
        "TestGroupSimple/848": KIP_848,
        "TestGroupETL/sticky/848": KIP_848,
        "TestGroupETL/range/848": KIP_848,
        "TestGroupETL/sticky/848/static": KIP_848,
        "TestTxnEtl/sticky/848": KIP_848,
        "TestTxnEtl/range/848": KIP_848,
        "TestTxnEtl/sticky/848/static": KIP_848,
    },
    "kafka-tools": {},
}
