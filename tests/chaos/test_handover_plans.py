"""Plans that are strange, many or hard to carry out: the group serves on and converges to the last one."""

import time
from pathlib import Path

import pytest
from handover_trial import NAMES, PARTITIONS, trial

pytestmark = [pytest.mark.kafka, pytest.mark.long]

STORM = 40
STORM_S = 4.0


@pytest.mark.parametrize("protocol", ["incremental", "eager"])
def test_a_storm_of_plans_converges_to_the_last(kafka: str, namespace: str, tmp_path: Path, protocol: str) -> None:
    with trial(kafka, namespace, tmp_path, session_s=6.0, rebalance_protocol=protocol) as run:
        began_s = time.monotonic()
        for number in range(STORM):
            time.sleep(max(0.0, began_s + number * STORM_S / STORM - time.monotonic()))  # the storm's own pace
            last = {partition: NAMES[(partition + number) % 3] for partition in range(PARTITIONS)}
            epoch = run.group.plan(NAMES, last)
        run.group.wait_for_owners(last)
        run.group.wait_for_epoch(epoch, *NAMES)
        settled = run.finish()

    assert len({one.timeline.epoch for one in settled}) > 3, "plans in between were carried out too"
