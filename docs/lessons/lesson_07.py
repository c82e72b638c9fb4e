"""Lesson 7: Starts take time."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="7 · Starts take time")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 7 · Starts take time

    **Goal:** find out when an autoscaler is not worth it. 20 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    A replica that is started does not serve yet. A process takes 2 s, a pod on a running node 10 s, a
    pod on a new node 50 s. During this **start-up time**, the replicas that exist must serve a growing
    load.

    A fixed number of replicas (`static-5`) never waits for a start. But it pays for five replicas even
    when one would be enough.

    **Guess before you run:** up to which start-up time is scaling cheaper than a fixed count, if 99.9 %
    must be in time?
    """)
    return


@app.cell
def _():
    contenders = ("tail-aware", "linear", "static-4", "static-5")

    def at_startup(startup_s):
        """Return a row (startup_s, policy, in time, replica-minutes) for each contender, for the first 300 s of W1."""
        known = {"planned_startup_s": startup_s} if startup_s else {}
        points = lab.compare("w1", contenders, seeds=1, startup_s=startup_s, duration_s=300, **known).points
        return [(startup_s, policy, *figures) for policy, figures in points.items()]

    rows = [row for startup_s in (0, 10, 20, 30) for row in at_startup(startup_s)]
    return (
        at_startup,
        contenders,
        rows,
    )


@app.cell
def _(contenders, rows):
    with lab.picture("share of late events over the start-up time", 2) as (drawn, axes):
        for name in contenders:
            own = [row for row in rows if row[1] == name]
            axes[0].plot([row[0] for row in own], [max(1 - row[2], 1e-5) for row in own], "o-", label=name)
            axes[1].plot([row[0] for row in own], [row[3] for row in own], "o-", label=name)
        axes[0].axhline(0.001, linestyle="--", color="tab:red")
        axes[0].set(yscale="log", ylabel="late events")
        axes[1].set(ylabel="replica-minutes", xlabel="start-up time, s")
        axes[0].legend(ncols=4)
    drawn
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The dashed line is the SLO. **Our own policy loses here**: with starts of 20 s or more it does not meet
    the SLO, although it pays for more replicas than with quick starts.
    """)
    return


@app.cell
def _():
    startup = mo.ui.slider(0, 60, step=5, value=30, label="start-up time, s", show_value=True)
    startup
    return (startup,)


@app.cell
def _(startup):
    lab.simulate(
        "w1", policy="tail-aware", startup_s=startup.value, planned_startup_s=startup.value or None, duration_s=300
    ).timeline()
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    1. At which seconds are events late? What did the load do one start-up time before?
    2. What would help: a faster start, a forecast, or a minimum number of replicas?

    ## Exercise

    Complete `crossing_s`. Each row is `(startup_s, policy, in_time, replica_minutes)`. Consider only
    rows with at least 99.9 % in time. Return the start-up time **from which on** the cheapest of them
    is always a fixed count (its name begins with `static-`), or `None`. Then call it with `rows`.
    """)
    return


@app.function
def crossing_s(rows):
    """Return one of the start-up times in the rows, or None. Replace ... by your answer."""
    return ...


@app.cell
def _():
    lab.check("07", crossing_s)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    A replica helps only after it has started, so a slow start must be paid for in advance, by replicas
    that wait. From some start-up time on, a fixed count is the better autoscaler.

    *Next:* [lesson 8](lesson_08.py), with `tailpack lesson open 8`. *More:* [when to use what](../explanation/when-to-use-what.md).
    """)
    return


if __name__ == "__main__":
    app.run()
