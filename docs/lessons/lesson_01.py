"""Lesson 1: One burst."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="1 · One burst")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 1 · One burst

    **Goal:** find how many events may arrive at once. 15 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    160 events arrive at the same moment. One replica serves 200 events/s: this is its **service rate**
    (μ). Each event must be done within 500 ms: this is the **latency target** (W). The latency of an
    event is its waiting time plus its service time.

    An average hides the problem. Over a second, 160 events are only 80 % of what the replica can serve.

    **Guess before you run:** how many of the 160 events are late? Write the number down. Then look at
    the picture. Each line is one event, from its arrival until it is done. The pale part is its wait.
    """)
    return


@app.cell
def _():
    size = mo.ui.slider(20, 400, step=10, value=160, label="events in the burst", show_value=True)
    rate = mo.ui.slider(50, 400, step=50, value=200, label="service rate (μ), events/s", show_value=True)
    target = mo.ui.slider(100, 1000, step=100, value=500, label="latency target (W), ms", show_value=True)
    ways = ["all at once", "evenly over one second", "all at once, a second replica takes half after 0.1 s"]
    way = mo.ui.dropdown(ways, value=ways[0], label="arrival")
    mo.vstack([size, rate, target, way])
    return (
        rate,
        size,
        target,
        way,
        ways,
    )


@app.cell
def _(rate, size, target, way, ways):
    served = lab.burst(
        size.value,
        rate.value,
        target.value / 1000,
        spread_s=1.0 if way.value == ways[1] else 0.0,
        second_at_s=0.1 if way.value == ways[2] else None,
    )
    served.picture()
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Change one thing at a time:

    1. Which burst is just in time? Double μ: how does that size change? Double W?
    2. Choose *evenly over one second*. The load is the same. What happened to the late events?
    3. Choose the second replica. It takes over half of the partitions after 0.1 s. Why are fewer events
       late, but not half as many?

    ## Exercise

    Complete `largest_burst`. It returns the largest number of events that may arrive at once, so that
    none is late. Change the cell and run it (Ctrl-Enter), then the check below, unless it has run by
    itself. It tries 50 pairs of μ and W, and says what is wrong.
    """)
    return


@app.function
def largest_burst(service_rate, target_s):
    """Return a whole number of events. service_rate: events/s. target_s: seconds. Replace None by your answer."""
    return None


@app.cell
def _():
    lab.check("01", largest_burst)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    The last event of a burst waits for all others, so a burst is in time only if the replica can serve
    it within the latency target. An average over a second does not show this, because equal averages
    have different bursts.

    *Next:* [lesson 2](lesson_02.py), with `tailpack lesson open 2`. *More:* [why tails break](../explanation/why-tails-break.md).
    """)
    return


if __name__ == "__main__":
    app.run()
