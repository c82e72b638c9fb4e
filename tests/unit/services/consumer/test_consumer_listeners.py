"""Listeners are called one at a time and in order; calls alternate for each partition."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from services.consumer.interface import ListenerCalls, Listeners

operations = st.lists(
    st.tuples(st.sampled_from(["taken", "released", "lost"]), st.sets(st.integers(0, 3)), st.booleans()), max_size=20
)


@given(operations)
def test_calls_alternate_for_each_partition_and_never_overlap(operations):
    owned: set[int] = set()
    is_busy = False

    def record(what):
        async def record_call(partitions) -> None:
            nonlocal is_busy
            assert not is_busy, "one at a time"
            assert partitions == sorted(partitions) != []
            is_busy = True
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            is_busy = False
            for partition in partitions:
                assert (partition in owned) == (what != "taken")
            owned.symmetric_difference_update(partitions)

        return record_call

    async def run() -> None:
        calls = ListenerCalls(
            Listeners(**{f"on_partitions_{what}": record(what) for what in ("taken", "released", "lost")})
        )
        tasks = []
        for what, partitions, waits in operations:
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
