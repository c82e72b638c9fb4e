"""The share of a partition's offsets that hold events, learned from what replicas report."""

from autoscaler.live.partition_offsets import MIN_OFFSETS, WINDOW_S, WINDOWS, RecordShares
from contracts.progress import Progress, ReplicaState


class Story:
    """Partition 0 of one replica, read window by window."""

    def __init__(self) -> None:
        self.now_s, self.position, self.skipped = 0.0, 0, 0
        self.learned = RecordShares(lambda: self.now_s)

    def report(self, events: int, skipped: int, incarnation: str = "1") -> dict[int, float]:
        """Report one window more, and return the shares."""
        self.now_s += WINDOW_S
        self.position, self.skipped = self.position + events + skipped, self.skipped + skipped
        self.learned.record_report(
            Progress(
                replica="a", incarnation=incarnation, pid=1, member_id="m", generation=1, epoch=1, assigned_epoch=1,
                state=ReplicaState.MEMBER, partitions=(0, 1), positions={0: self.position, 1: 9},
                skipped={0: self.skipped} if self.skipped else {}, processed=0, busy_us=0, rebalances=1, at_us=0,
            )
        )  # fmt: skip
        return dict(self.learned.shares())


def test_topics_without_transactions_and_few_offsets_have_no_share() -> None:
    story = Story()
    assert [story.report(1000, 0), story.report(10, 1), story.report(10, MIN_OFFSETS - 11)] == [{}, {}, {}]


def test_one_marker_for_each_event_halves_the_share_also_under_the_next_owner() -> None:
    story = Story()
    story.report(50, 50)
    assert story.report(50, 50) == {0: 0.5}
    story.position, story.skipped = story.position + 900, 0
    assert [story.report(5, 5, "2"), story.report(50, 50, "2")] == [{0: 0.5}, {0: 0.5}]


def test_a_burst_of_aborted_records_does_not_hide_the_load_after_it() -> None:
    story = Story()
    story.report(99, 1)
    story.report(99, 1)
    shares = [story.report(0, 4000)[0] for _ in range(WINDOWS)]
    assert shares == [0.99] * (WINDOWS - 1) + [0.0]
    assert story.report(99, 1) == {0: 0.99}, "at the first events"
