"""Lesson 4: Bin packing."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="4 · Bin packing")

with app.setup:
    from random import Random

    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 4 · Bin packing

    **Goal:** decide which replica owns which partition, with few moves. 20 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    A replica has a capacity, here 100 events/s. Each partition has a load. Partitions must be placed so
    that no replica is over its capacity, on few replicas. This is *bin packing*.

    **First-fit decreasing** sorts the partitions by load, the largest first. It puts each into the
    first replica that has room. It needs few replicas. But the load changes all the time, and a moved
    partition pauses. First-fit does not look at who owns a partition now.

    **Guess before you run:** the loads drift by a few per cent from tick to tick. Which part of the
    load does first-fit move at each tick?
    """)
    return


@app.cell
def _():
    def first_fit(loads, owners, capacity):
        """Place the largest partitions first, each into the first replica with room; the old owners do not matter."""
        placed, room = list(owners), []
        for partition in sorted(range(len(loads)), key=lambda one: -loads[one]):
            at = next((at for at, free in enumerate(room) if loads[partition] <= free), len(room))
            if at == len(room):
                room.append(capacity)
            room[at] -= loads[partition]
            placed[partition] = at
        return placed

    return (first_fit,)


@app.cell
def _(first_fit):
    def ticks(algorithm, seed=1, count=20):
        """Return (loads, owners before, owners after) of each tick, while the loads of nine partitions drift."""
        random = Random(seed)
        loads = [random.uniform(10, 40) for _ in range(9)]
        owners, found = first_fit(loads, [0] * 9, 100), []
        for _ in range(count):
            loads = [min(90, max(5, load * random.uniform(0.85, 1.18))) for load in loads]
            after = list(algorithm(list(loads), list(owners), 100))
            found.append((loads, owners, after))
            owners = after
        return found

    return (ticks,)


@app.cell
def _():
    tick = mo.ui.slider(0, 19, value=3, label="tick", show_value=True)
    use_mine = mo.ui.checkbox(label="use my function `place`")
    mo.hstack([tick, use_mine], justify="start")
    return (
        tick,
        use_mine,
    )


@app.cell
def _(first_fit, ticks, tick, use_mine):
    history = ticks(place if use_mine.value else first_fit)
    moved = [sum(x for x, a, b in zip(*each) if a != b) / sum(each[0]) for each in history]
    loads, before, after = history[tick.value]
    with lab.picture(
        f"tick {tick.value}: {moved[tick.value]:.0%} of the load moves; mean of 20 ticks {sum(moved) / 20:.0%}"
    ) as (
        drawn,
        (axes,),
    ):
        filled = dict.fromkeys(after, 0)
        for load, old, new in zip(loads, before, after):
            axes.bar(new, load, bottom=filled[new], color="tab:red" if old != new else "tab:blue", edgecolor="white")
            filled[new] += load
        axes.axhline(100, linestyle="--", color="black")
        axes.set(xlabel="replica (red: moved to it at this tick)", ylabel="load, events/s", xticks=sorted(set(after)))
    drawn
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise

    Complete `place`: **move only what overflows**. Keep every owner whose replica is within its
    capacity. Otherwise remove partitions until it fits, and put each into a replica with room, or into
    a new one, which gets the next free number. Then tick the box above, to see it at work.

    The check draws 200 cases. No replica may be over its capacity. At most one replica more than
    necessary may be used. Over all cases, at most half as much load may move as under first-fit.
    """)
    return


@app.function
def place(loads, owners, capacity):
    """Return the new owner of each partition. loads: events/s. owners: the replica that owns each one now.

    Replace the line below: nothing moves, so replicas overflow.
    """
    return list(owners)


@app.cell
def _():
    lab.check("04", place)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    The best packing is not the best plan, because each moved partition pauses. Good plans start from
    the present owners and move only what must move.

    *Next:* [lesson 5](lesson_05.py), with `tailpack lesson open 5`. *More:* [packing](../explanation/packing.md).
    """)
    return


if __name__ == "__main__":
    app.run()
