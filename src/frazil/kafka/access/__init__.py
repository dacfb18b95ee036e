"""kafka/access: who may do what.

login.py                Login: SASL PLAIN with the tokens of the node, SCRAM with users
scram.py                SCRAM (RFC 5802): credentials and the exchange of a login
users.py                UserFile, Users: who may log in by SCRAM
user_administration.py  UserAdministration: DescribeUserScramCredentials, AlterUserScramCredentials
acls.py                 AclBinding, AclIndex: which principal may do what with which resource
authorizer.py           Authorizer: decides, by ACLs and super users; Caller: who sends a request
acl_administration.py   AclAdministration: DescribeAcls, CreateAcls, DeleteAcls
guards/                 ACLs, enforced around the handlers
quotas.py               ClientQuotas: bytes per second that clients may produce and consume
quota_administration.py QuotaAdministration: DescribeClientQuotas, AlterClientQuotas
principals.py           who a client is by its certificate
files.py                AccessFile: small states below `kafka/`, replaced whole
"""
