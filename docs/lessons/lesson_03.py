"""Lesson 3: Skew."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="3 · Skew")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 3 · Skew

    **Goal:** see why the same load is late on other partitions. 20 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    A topic has partitions. Each partition has one owner at a time, and its events are served in order.
    In `w1` the events are spread evenly over five partitions. In `w1-skew9` the same number of events
    arrives each second, but half of them are in two of nine partitions.

    The policy `linear` computes the number of replicas from the sum of the load. It keeps 97 % in time
    on `w1`.

    **Guess before you run:** which share does it keep on `w1-skew9`, and where are the late events?

    In the pictures, each row is a partition, each column a second. Yellow is at the latency target
    (0.5 s), red is far over it.
    """)
    return


@app.cell
def _():
    lab.simulate("w1", policy="linear").partitions()
    return


@app.cell
def _():
    lab.simulate("w1-skew9", policy="linear").partitions()
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The sum of the load is the same. Would more replicas help? With a fixed count, `static-N` gives each
    replica as equal a *number* of partitions as possible.
    """)
    return


@app.cell
def _():
    count = mo.ui.slider(1, 9, value=5, label="replicas, all the time", show_value=True)
    count
    return (count,)


@app.cell
def _(count):
    lab.simulate("w1-skew9", policy=f"static-{count.value}").partitions()
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    1. Find the smallest count without yellow or red cells. How many replica-minutes does it cost?
    2. Which partitions are red with five replicas? Which replica owns them, and what else?
       `lab.simulate("w1-skew9", policy="static-5").decision(at=60).partitions` lists the owners.
    3. Why can no policy use more replicas than partitions?

    ## Exercise

    `table[second][partition]` is the number of events that arrive at once in that second. Even a
    replica that owns only one partition is too slow if the burst is too large. Complete
    `first_hopeless`: return `(second, partition)` of the first burst that no number of replicas could
    serve in time. Of several in one second, return the lowest partition. If there is none, return
    `None`. Every burst in the table that is in time is done before the next second.
    """)
    return


@app.function
def first_hopeless(table, service_rate, target_s):
    """Return (second, partition) or None. service_rate: events/s. target_s: seconds. Replace ... by your answer."""
    return ...


@app.cell
def _():
    lab.check("03", first_hopeless)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    Replicas share the load only as far as partitions can be divided among them, so the largest
    partition limits what any number of replicas can do. A policy that counts only the sum of the load
    does not see which replica is overloaded.

    *Next:* [lesson 4](lesson_04.py), with `tailpack lesson open 4`. *More:* [partitioners and order](../explanation/partitioners-and-order.md).
    """)
    return


if __name__ == "__main__":
    app.run()
