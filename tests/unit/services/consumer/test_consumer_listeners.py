"""Listeners are called one at a time and in order; calls alternate for each partition."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from services.consumer.interface import ListenerCalls, Listeners

happenings = st.lists(
    st.tuples(st.sampled_from(["taken", "released", "lost"]), st.sets(st.integers(0, 3)), st.booleans()), max_size=20
)


@given(happenings)
def test_calls_alternate_for_each_partition_and_never_overlap(story):
    owned: set[int] = set()
    busy = False

    def hear(what):
        async def heard(partitions) -> None:
            nonlocal busy
            assert not busy, "one at a time"
            assert partitions == sorted(partitions) != []
            busy = True
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            busy = False
            for partition in partitions:
                assert (partition in owned) == (what != "taken")
            owned.symmetric_difference_update(partitions)

        return heard

    async def run() -> None:
        calls = ListenerCalls(
            Listeners(**{f"on_partitions_{what}": hear(what) for what in ("taken", "released", "lost")})
        )
        tasks = []
        for what, partitions, waits in story:
            tasks.append(getattr(calls, f"on_{what}")(partitions))
            if waits:
                await tasks[-1]
        await asyncio.gather(*tasks)

    asyncio.run(run())


async def test_a_lost_partition_is_forgotten_before_it_is_loaded_again():
    state: dict[int, str] = {}
    gate = asyncio.Event()

    async def load(partitions) -> None:
        state.update(dict.fromkeys(partitions, "loaded"))

    async def forget(partitions) -> None:
        await gate.wait()
        for partition in partitions:
            state.pop(partition)

    calls = ListenerCalls(Listeners(on_partitions_taken=load, on_partitions_lost=forget))
    await calls.on_taken([0])
    lost, again = calls.on_lost([0]), calls.on_taken([0])
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(lost, again)
    assert state == {0: "loaded"}
