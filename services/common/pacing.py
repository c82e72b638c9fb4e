"""Pauses between the requests of a Faust service, so that records share requests to the broker."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, Final

from aiokafka.structs import TopicPartition

from contracts.clock import monotonic_s
from services.consumer.connections import PromptFetcher

PATIENCE_S: Final = 0.2
"""How long records wait for others if no order waits for them, seconds."""
FETCH_WAIT_MS: Final = 500  # longest wait of a fetch at the broker
PARTIAL_FETCH_WAIT_MS: Final = 100  # the same for a fetch without the background topics, which wait for its end


class PacedFetcher(PromptFetcher):
    """Pauses after records were fetched. A record that arrives later than the end of the pause is fetched at once."""

    _resumes_s = 0.0

    @classmethod
    def pace(cls, fetcher: Any, background: Collection[str], pause_s: float) -> None:
        """Replace the class of `fetcher`. background: topics to fetch every PATIENCE_S. pause_s: for the others."""
        fetcher.__class__ = cls
        fetcher._background, fetcher._pause_s = background, pause_s
        fetcher._background_s = {}  # broker → time from which its background partitions are fetched

    def _get_actions_per_node(self, assignment: Any) -> Any:
        now_s = monotonic_s()
        if now_s < self._resumes_s:
            return [], {}, self._resumes_s - now_s, False, []
        early = {node_id for node_id, from_s in self._background_s.items() if now_s < from_s}
        self._fetch_max_wait_ms = PARTIAL_FETCH_WAIT_MS if early else FETCH_WAIT_MS
        if early:
            node_of = self._select_read_replica
            others = [one for one in assignment.tps if one.topic not in self._background or node_of(one) not in early]
            assignment = SimpleNamespace(tps=others, state_value=assignment.state_value)
        return super()._get_actions_per_node(assignment)

    async def _proc_fetch_request(self, assignment: Any, node_id: Any, request: Any) -> bool:
        has_records: bool = await super()._proc_fetch_request(assignment, node_id, request)
        if has_records:
            places = {TopicPartition(topic, number) for topic, some in request.topics for number, *_ in some}
            now_s, fetched = monotonic_s(), {place.topic for place in places & self._records.keys()}
            # A pause in progress is not prolonged. Else answers of several brokers could prolong it for ever.
            if now_s >= self._resumes_s and not fetched <= set(self._background):
                self._resumes_s = now_s + self._pause_s
            if not fetched.isdisjoint(self._background):
                self._background_s[node_id] = now_s + PATIENCE_S
        return has_records
