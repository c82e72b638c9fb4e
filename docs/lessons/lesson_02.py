"""Lesson 2: Lag is not latency."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="2 · Lag is not latency")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 2 · Lag is not latency

    **Goal:** find out what a lag threshold promises. 20 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    Lag is the number of events that wait. Many autoscalers use it: KEDA with an HPA starts one replica
    for each `lagThreshold` waiting events. Here it scales the workload W1: in ten minutes, three waves
    of bursts, up to 350 events/s. A replica serves 200 events/s. 99.9 % of the events must be done within 500 ms.

    The HPA looks at the lag every 15 s.

    **Guess before you run:** with a threshold of 100, which share of events is in time? And is there a
    threshold with 99.9 % in time that is cheaper than five replicas for ten minutes (50
    *replica-minutes*)?

    The first simulation loads compiled code, which takes some seconds.
    """)
    return


@app.cell
def _():
    thresholds = (5, 20, 50, 100, 200, 500)
    found = lab.compare(
        "w1",
        [*(("keda-hpa", {"lag_threshold": each}) for each in thresholds), "static-3", "static-4", "static-5"],
        seeds=1,
    )
    found.front()
    return (thresholds,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Each point is one policy; a number is a threshold. The dashed line is the SLO (99.9 %): points below
    it meet it. `static-4` has four replicas all the time. A cell with `found` lists the numbers. Now choose a threshold, and see when the events were late.
    """)
    return


@app.cell
def _(thresholds):
    threshold = mo.ui.slider(steps=thresholds, value=100, label="lagThreshold, events", show_value=True)
    threshold
    return (threshold,)


@app.cell
def _(threshold):
    lab.simulate("w1", policy="keda-hpa", lag_threshold=threshold.value).timeline()
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    1. Which thresholds meet the SLO, and what do they cost? Compare with the fixed counts.
    2. Look at the lowest panel at threshold 100. How long after the rise of the load do replicas start?
    3. At a burst, the lag is high for a part of a second. Does the HPA see it?

    ## Exercise

    The load rises in one moment to `rate`, which is more than the replicas can serve (`capacity`). The
    backlog then grows until the autoscaler looks again. Complete `longest_interval_s`: how long after
    the rise is no event late? What waits is served at `capacity`. If the replicas can serve the rate, return `float("inf")`.
    """)
    return


@app.function
def longest_interval_s(rate, capacity, target_s):
    """Return seconds. rate, capacity: events/s. target_s: latency target in seconds. Replace None by your answer."""
    return None


@app.cell
def _():
    lab.check("02", longest_interval_s)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    A lag threshold promises a number of waiting events, not a latency, and between two looks it
    promises nothing. How long you may look away follows from the latency target and from how fast the
    load can rise.

    *Next:* [lesson 3](lesson_03.py), with `tailpack lesson open 3`. *More:* [when to use what](../explanation/when-to-use-what.md).
    """)
    return


if __name__ == "__main__":
    app.run()
