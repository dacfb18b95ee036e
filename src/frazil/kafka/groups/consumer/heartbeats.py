"""ConsumerHeartbeats: ConsumerGroupHeartbeat, and members that are silent for too long.

    requests ──> queue ──> a copy of the group: members change, then the target, then what the
                           members of these requests own ──> records ──> log
                                                                          │ durable
    responses <──────────────── the copy is the group now <───────────────┘

Requests that come while records are written wait, and are written together. What a member is told
is durable; what is not stored never was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from frazil.errors import TooLarge
from frazil.kafka.context import TopicVisibility
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.known_topics import KnownTopics
from frazil.kafka.groups.consumer.reconciliation import is_reconciled, reconcile
from frazil.kafka.groups.consumer.records import by_topic, records_between
from frazil.kafka.groups.consumer.requests import (
    Refusal,
    check_limits,
    check_request,
    find_leaving,
    find_member,
    is_full,
    is_leaving,
    new_member,
    owned_partitions,
    updated,
)
from frazil.kafka.groups.consumer.sessions import Dismissal, MemberSessions
from frazil.kafka.groups.consumer.targets import update_target
from frazil.kafka.groups.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_PARTITIONS,
    ConsumerGroup,
    ConsumerGroupData,
    ConsumerMember,
    SeenTopics,
)
from frazil.kafka.groups.errors import storage_error
from frazil.kafka.groups.group import ClassicGroup
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.member import JoiningClient, Reply
from frazil.kafka.groups.rebalance import EXPIRED, REBALANCES
from frazil.kafka.groups.records import group_key
from frazil.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from frazil.log import AppendResult
from frazil.model import KiB

TOGETHER_MAX = 200
TOGETHER_BYTES_MAX = 256 * KiB
"""Requests of one group that are written together."""

Response = ConsumerGroupHeartbeatResponse


@dataclass(slots=True)
class _Heartbeat:
    request: ConsumerGroupHeartbeatRequest
    client: JoiningClient
    reply: Reply[Response]
    size_bytes: int
    response: Response | None = None


Job = _Heartbeat | Dismissal


class ConsumerHeartbeats:
    """Owned by one thread."""

    def __init__(self, groups: Groups, topics: KnownTopics) -> None:
        self._groups = groups
        self._topics = topics
        self._sessions = MemberSessions(groups.timers, groups.config, self._dismiss)

    def resume(self, group: ConsumerGroup) -> None:
        """Watch the members of a group that was read from the log."""
        group.state_ms = self._groups.time.now_ms()
        self._sessions.follow(group, ConsumerGroupData())

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: JoiningClient,
        reply: Reply[Response],
    ) -> None:
        """Answer with the epoch and the partitions of a member, once they are durable."""
        refusal = check_request(request, client, self._groups.config)
        if refusal is not None:
            reply(refusal.response())
            return
        if not request.member_id:
            request.member_id = self._groups.new_member_id(client.client_id)
        group = self._find(request)
        if isinstance(group, Refusal):
            reply(group.response())
            return
        member = group.members.get(request.member_id)
        self._topics.refresh_if_due()
        if member is not None and self._is_settled(group, member, request, client):
            self._sessions.heard(group, member.member_id)
            reply(self._response(member, with_assignment=is_full(request)))
            return
        if len(group.queue) >= 2 * self._groups.config.members_max:
            message = "too many requests of this group are waiting"
            reply(Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, message).response())
            return
        size_bytes = updated(new_member(request), request, client).size_bytes
        group.queue.append(_Heartbeat(request, client, reply, size_bytes))
        self._run(group)

    def _find(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup | Refusal:
        """Return the group; a new one if a member joins. An empty classic group becomes one."""
        group = self._groups.get(request.group_id)
        if group is not None and group.is_dead:
            return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group is being deleted")
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch != JOIN_EPOCH:
            message = f"there is no member {request.member_id}"
            return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
        if group is not None and not group.is_removable:
            message = "the group has members that use the classic protocol; stop them first"
            return Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
        if group is None and len(self._groups) >= self._groups.config.groups_max:
            return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "there are too many groups")
        return self._create(request.group_id, group)

    def _create(self, group_id: str, before: ClassicGroup | None) -> ConsumerGroup:
        group = ConsumerGroup(group_id, self._groups.time.now_ms())
        if before is not None:
            # An epoch goes on where the generations ended: no number is used twice.
            group.data.epoch = group.data.assignment_epoch = before.generation
            group.old_records = [*before.old_records]
            if before.is_saved:
                group.old_records.append((group_key(group_id), None))
        self._groups.put(group)
        return group

    def _is_settled(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        client: JoiningClient,
    ) -> bool:
        """Return whether a heartbeat changes nothing, as most do."""
        data = group.data
        return (
            request.member_epoch == member.epoch > 0
            and is_reconciled(member, data.assignment_epoch)
            and data.epoch == data.assignment_epoch
            and group.topics_version == self._topics.version
            and request.instance_id in (None, member.instance_id)
            and updated(member, request, client) is member
            and self._has_seen(data, member, client)
        )

    def _has_seen(
        self, data: ConsumerGroupData, member: ConsumerMember, client: JoiningClient
    ) -> bool:
        """Return whether it is known which topics of its regular expression a member may
        describe, of these topics and by these ACLs."""
        if member.regex is None or client.visibility is None:
            return True
        seen = data.seen.get(member.member_id)
        return seen is not None and seen.version == self._version(client.visibility)

    def _version(self, visibility: TopicVisibility) -> tuple[int, int]:
        return self._topics.version, visibility.version

    def _dismiss(self, group: ConsumerGroup, dismissal: Dismissal) -> None:
        group.queue.append(dismissal)
        self._run(group)

    def _run(self, group: ConsumerGroup) -> None:
        """Do what waits, unless records are on their way."""
        while group.queue and group.pending is None:
            jobs: list[Job] = []
            size_bytes = 0
            while group.queue and len(jobs) < TOGETHER_MAX and size_bytes < TOGETHER_BYTES_MAX:
                job: Job = group.queue.popleft()
                jobs.append(job)
                size_bytes += job.size_bytes if isinstance(job, _Heartbeat) else 0
            self._work(group, jobs)

    def _work(self, group: ConsumerGroup, jobs: list[Job]) -> None:
        after = group.data.copy()
        is_changed = False
        for job in jobs:
            if isinstance(job, Dismissal):
                is_changed |= self._remove(after, job)
            elif is_leaving(job.request):
                is_changed |= self._leave(after, job)
            else:
                is_changed |= self._update(group, after, job)
        if is_changed:
            self._topics.refresh()
        version = self._topics.version
        for job in jobs:
            if isinstance(job, _Heartbeat) and job.response is None:
                is_changed |= self._look(after, job)
        is_rebalance = update_target(after, self._topics, is_changed=is_changed)
        for job in jobs:
            if isinstance(job, _Heartbeat) and job.response is None:
                self._reconcile(group, after, job)
        now_ms = self._groups.time.now_ms()
        records = records_between(group.group_id, group.data, after, now_ms)
        if not records:
            group.topics_version, group.data.seen = version, after.seen
            _respond(jobs)
            return
        group.pending = after
        done = partial(self._written, group, jobs, version, is_rebalance)
        self._groups.journal.append([*group.old_records, *records], done)

    def _written(
        self,
        group: ConsumerGroup,
        jobs: list[Job],
        version: int,
        is_rebalance: bool,
        result: AppendResult | Exception,
    ) -> None:
        before, after = group.data, group.pending
        assert after is not None
        group.pending = None
        if isinstance(result, Exception):
            self._failed(group, jobs, result)
        else:
            group.data, group.topics_version = after, version
            group.is_saved, group.old_records = True, []
            if before.members and not after.members:
                group.state_ms = self._groups.time.now_ms()
            self._sessions.follow(group, before)
            REBALANCES.add(int(is_rebalance))
            dismissed = [job.member_id for job in jobs if isinstance(job, Dismissal)]
            EXPIRED.add(sum(each not in after.members for each in dismissed))
            _respond(jobs)
        self._run(group)

    def _failed(self, group: ConsumerGroup, jobs: list[Job], error: Exception) -> None:
        """Nothing has changed. Clients ask again; silent members are looked at again."""
        code = storage_error(error)
        if isinstance(error, TooLarge):
            code = ErrorCode.GROUP_MAX_SIZE_REACHED
        for job in jobs:
            if isinstance(job, _Heartbeat):
                job.reply(Refusal(code, f"the group was not stored: {error}").response())
            else:
                job.retry()

    def _remove(self, data: ConsumerGroupData, job: Dismissal) -> bool:
        member = data.members.get(job.member_id)
        if member is None or not job.is_due(member):
            return False
        data.remove(member)
        return True

    def _leave(self, data: ConsumerGroupData, job: _Heartbeat) -> bool:
        """Remove a member, or keep the place of a static one until its session is over."""
        request = job.request
        member = find_leaving(data, request)
        if isinstance(member, Refusal):
            job.response = member.response()
            return False
        job.response = Response(member_id=member.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == LEAVE_EPOCH:
            data.remove(member)
            return True
        data.put(replace(member, epoch=LEAVE_STATIC_EPOCH, revoking=NO_PARTITIONS))
        return False

    def _update(self, group: ConsumerGroup, data: ConsumerGroupData, job: _Heartbeat) -> bool:
        """Take what a member has sent. Returns whether that needs a new target."""
        request = job.request
        found = find_member(data, request, self._groups.config)
        refusal = found if isinstance(found, Refusal) else None
        member = found if isinstance(found, ConsumerMember) else None
        if member is not None:
            member = updated(member, request, job.client)
            refusal = check_limits(data, member, self._groups.config)
        if member is None or refusal is not None:
            assert refusal is not None
            job.response = refusal.response()
            return False
        before = data.members.get(member.member_id)
        holder = data.members.get(data.static.get(request.instance_id or "", ""))
        if before is None and holder is not None:
            target = data.target.get(holder.member_id, NO_PARTITIONS)
            data.remove(holder)
            data.target[member.member_id] = target
            before = holder
        data.put(member)
        if member.regex is not None:
            data.regexes.setdefault(member.regex, ())
        if member.member_id in group.sessions:
            self._sessions.heard(group, member.member_id)
        return before is None or (before.topics, before.regex) != (member.topics, member.regex)

    def _look(self, data: ConsumerGroupData, job: _Heartbeat) -> bool:
        """Find the topics that match the regular expression of a member, and that it may describe.
        Returns whether they are others than before."""
        member, visibility = data.members.get(job.request.member_id), job.client.visibility
        if member is None or member.regex is None or visibility is None:
            return False
        before = data.matching(member)
        names = tuple(filter(visibility.sees, self._topics.matching(member.regex)))
        data.seen[member.member_id] = SeenTopics(names, self._version(visibility))
        return names != before

    def _reconcile(self, group: ConsumerGroup, data: ConsumerGroupData, job: _Heartbeat) -> None:
        request = job.request
        member = data.members.get(request.member_id)
        if member is None:
            refusal = Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the member was removed")
            job.response = refusal.response()
            return
        member = reconcile(
            member,
            told_epoch=request.member_epoch,
            owned=owned_partitions(request),
            target=data.target.get(member.member_id, NO_PARTITIONS),
            target_epoch=data.assignment_epoch,
            owners=data.owners,
        )
        data.put(member)
        known = group.members.get(member.member_id)
        is_other = known is None or known.assigned != member.assigned
        job.response = self._response(member, with_assignment=is_other or is_full(request))

    def _response(self, member: ConsumerMember, *, with_assignment: bool) -> Response:
        response = Response(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._groups.config.consumer_heartbeat_interval_ms,
        )
        if with_assignment:
            kind = Response.TopicPartitions
            listed = [kind(*each) for each in by_topic(member.assigned).items()]
            response.assignment = Response.Assignment(topic_partitions=listed)
        return response


def _respond(jobs: list[Job]) -> None:
    for job in jobs:
        if isinstance(job, _Heartbeat):
            assert job.response is not None
            job.reply(job.response)
