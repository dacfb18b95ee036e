"""Groups: all groups by their ids, and what every part of the coordinator works with."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.kafka.groups.errors import storage_error
from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.groups.journal import Journal
from frazil.kafka.groups.records import group_record
from frazil.kafka.groups.timers import GroupTimers
from frazil.model import Rand, SteadyTime
from frazil.settings import GroupsConfig

PREFIX_CHARS_MAX = 255
"""Characters of a client's name that its member id begins with. Ids of any length would not fit
into records."""

Group = ClassicGroup | ConsumerGroup
Saved = Callable[[ErrorCode], None]
"""Called once: NONE when the group is durable, otherwise why it is not."""


class Groups:
    """Owned by one thread."""

    def __init__(
        self,
        config: GroupsConfig,
        *,
        journal: Journal,
        timers: GroupTimers,
        time: SteadyTime,
        rand: Rand,
    ) -> None:
        self.config = config
        self.journal = journal
        self.timers = timers
        self.time = time
        self._rand = rand
        self._groups: dict[str, Group] = {}

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup | None:
        """Return the group if it is a classic one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def create(self, group_id: str) -> ClassicGroup | None:
        """Create a classic group. None if there are too many."""
        if len(self._groups) >= self.config.groups_max:
            return None
        group = ClassicGroup(group_id, self.time.now_ms())
        self._groups[group_id] = group
        return group

    def put(self, group: Group) -> None:
        """Add a group that was read from the log, or replaces one of the other kind."""
        self._groups[group.group_id] = group

    def set_dead(self, group: Group, is_dead: bool) -> None:
        """Refuse all requests to a group while it is being deleted; or go on, if it was not."""
        if isinstance(group, ConsumerGroup):
            group.is_dead = is_dead
        else:
            group.state = GroupState.DEAD if is_dead else GroupState.EMPTY

    def remove(self, group: Group) -> None:
        """Forget a group."""
        self.set_dead(group, True)
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)

    def new_member_id(self, prefix: str) -> str:
        """Return an id that no other member ever had."""
        return (
            f"{prefix[:PREFIX_CHARS_MAX]}-{uuid.UUID(int=self._rand.getrandbits(128), version=4)}"
        )

    def move(self, group: ClassicGroup, state: GroupState) -> None:
        """Change the state of a group."""
        group.state = state
        group.state_ms = self.time.now_ms()

    def save(
        self, group: ClassicGroup, assignments: dict[str, bytes], saved: Saved | None = None
    ) -> None:
        """Write the group with these assignments."""
        generation = group.generation

        def done(result: object) -> None:
            error = storage_error(result) if isinstance(result, Exception) else ErrorCode.NONE
            if error is ErrorCode.NONE:
                group.saved_generation = max(group.saved_generation, generation)
                group.old_records = []
            if saved is not None:
                saved(error)

        self.journal.append([*group.old_records, group_record(group, assignments)], done)
