"""Lesson 5: The price of a rebalance."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="5 · The price of a rebalance")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 5 · The price of a rebalance

    **Goal:** find out what one moved partition costs. 20 minutes; Kafka only if you measure yourself.

    To begin, run all cells: press ▷ at the bottom right.

    A partition that moves to another replica is not served for a moment. How long depends on the
    **rebalance protocol**. *cooperative-sticky* needs two rebalances. In *kip848* (Kafka 4), the broker
    leads. In both, members learn of a rebalance at their next heartbeat. *eager* stops the whole group.
    *incremental* is the protocol of this project: the old owner serves until the new one takes over.

    Here 150 events/s arrive at six partitions: 25 events/s at each.

    **Guess before you run:** a partition stands still for 3 s. How many of its events are late, if 500 ms
    are allowed?

    The table was **measured** on a real Kafka, not simulated ([results](../results/index.md)).
    """)
    return


@app.cell
def _():
    measured = lab.recorded("handover")
    mo.md(
        "| protocol | heartbeat | moves | worst latency, moved partition | p99, other partitions |\n|---|---|---|---|---|\n"
        + "\n".join(
            f"| {row['protocol']} | {row['heartbeat_s']} s | {row['moves']} | {row['moved_worst_s'] * 1e3:,.0f} ms | {row['others_p99_s'] * 1e3:.0f} ms |"
            for row in measured
        )
    )
    return (measured,)


@app.cell
def _():
    moves = mo.ui.slider(1, 30, value=4, label="moved partitions per minute", show_value=True)
    target = mo.ui.slider(50, 1000, step=50, value=200, label="latency target (W), ms", show_value=True)
    mo.vstack([moves, target])
    return (
        moves,
        target,
    )


@app.cell
def _(measured, moves, target):
    def late_events(stall_s, target_s, rate=25):
        """Return how many events are late if a partition stands still: those that arrive early in the stall."""
        return rate * max(0.0, stall_s - target_s)

    with lab.picture(f"{moves.value} moves per minute, {target.value} ms allowed") as (drawn, (axes,)):
        for row in measured:
            share = late_events(row["moved_worst_s"], target.value / 1000) * moves.value / (150 * 60)
            axes.barh(f"{row['protocol']}, {row['heartbeat_s']} s", max(1e-5, share), color="tab:blue")
        axes.axvline(0.001, linestyle="--", color="tab:red", label="allowed: 0.1 %")
        axes.set(
            xlabel="share of late events, if each move is as slow as the worst measured one",
            xscale="log",
            xlim=(1e-5, 1),
        )
        axes.legend()
    drawn
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    1. With how many moves per minute does each protocol keep 99.9 % in time? And within 50 ms?
    2. What does a shorter heartbeat change? What does it cost?

    Measure it yourself with `tailpack dev bench handover --quick --runtime kip848` (a minute; needs Java).
    To see a death instead of a move, press the button: it runs a pipeline for 15 s and kills a replica.
    """)
    return


@app.cell
def _():
    measure = mo.ui.run_button(label="Kill a replica now")
    measure
    return (measure,)


@app.cell
def _(measure):
    lab.live("smoke", kill="payment-0@8").timeline() if measure.value else mo.md("*not measured yet*")
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise

    `late_per_move` lists how many events were late at each move that you measured. Complete
    `moves_per_minute`: how many moves fit, on average, into the allowed share of late events?
    """)
    return


@app.function
def moves_per_minute(late_per_move, rate, allowed_share):
    """Return a whole number. rate: events/s. allowed_share: for example 0.001. Replace None by your answer."""
    return None


@app.cell
def _():
    lab.check("05", moves_per_minute)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    A change of owners has a price in late events, and the rebalance protocol sets it. An autoscaler
    that ignores this price changes too often.

    *Next:* [lesson 6](lesson_06.py), with `tailpack lesson open 6`. *More:* [handover](../explanation/handover.md).
    """)
    return


if __name__ == "__main__":
    app.run()
