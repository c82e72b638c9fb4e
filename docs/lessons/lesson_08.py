"""Lesson 8: How a p99 can mislead."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="8 · How a p99 can mislead")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 8 · How a p99 can mislead

    **Goal:** measure a latency so that a stall is visible. 20 minutes; Kafka only if you measure
    yourself.

    To begin, run all cells: press ▷ at the bottom right.

    The p99 is the latency that 99 % of events do not exceed. It depends on **which events are sent**. A
    *closed-loop* client sends the next request when it has the answer to the last one. If the server
    stands still, the client stands still, too. Customers do not: their orders arrive at their
    **intended time**.

    In the scenario `stops-3s`, each change of the replicas stops the group for 3 s (protocol *eager*).
    This happens once in 75 s. The run below is **simulated**.

    **Guess before you run:** which p99 does a closed-loop client report, and which do the customers
    see?
    """)
    return


@app.cell
def _():
    stop = mo.ui.slider(0.5, 3.0, step=0.5, value=3.0, label="stop at a change, s", show_value=True)
    stop
    return (stop,)


@app.cell
def _(stop):
    run = lab.simulate("stops-3s", policy="linear", spacing="smooth", rebalance_time_s=stop.value, duration_s=75)
    intended_s, latency_s = run.events["intended_s"], run.events["latency_s"]
    worst = latency_s.argmax()
    stall = (intended_s[worst], intended_s[worst] + latency_s[worst])
    return (
        intended_s,
        latency_s,
        run,
        stall,
    )


@app.cell
def _(intended_s, latency_s, stall):
    def waiting_client(intended_s, stall, service_s=0.005):
        """Return the latencies that a closed-loop client measures on this server: it waits for each answer."""
        found, free_s = [], 0.0
        for at_s in intended_s:
            if at_s >= free_s:
                free_s = (stall[1] if stall[0] <= at_s < stall[1] else at_s) + service_s
                found.append(free_s - at_s)
        return found

    closed = waiting_client(intended_s, stall)
    missing = len(intended_s) - len(closed)
    with lab.picture(f"the closed loop never sent {missing} of {len(intended_s)} events") as (drawn, (axes,)):
        lab.nines(axes, latency_s, "from the intended time", "tab:blue")
        lab.nines(axes, closed, "closed loop", "tab:red")
        axes.legend()
    drawn
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    1. Read both curves at 0.99. Which number would you put into a report?
    2. How many events did the closed loop never send? Where would they be in the picture?
    3. Shorten the stop. Which of the two curves changes at 0.99?

    The button **measures**: it stops the broker of a real pipeline for 2 s. It needs Java and a minute.
    """)
    return


@app.cell
def _():
    measure = mo.ui.run_button(label="Stop a broker for 2 s now")
    measure
    return (measure,)


@app.cell
def _(measure):
    lab.live("smoke", freeze="6+2").latency() if measure.value else mo.md("*not measured yet*")
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise

    Write the client yourself. Complete `closed_loop`. `serve(sent_s)` returns when the server answers a
    request. The client sends each event at its intended time, unless it still waits for an answer then:
    in that case it skips the event. Return `(sent_s, done_s)` of the events that were sent.
    """)
    return


@app.function
def closed_loop(intended_s, serve):
    """Return a list of pairs (sent_s, done_s). Replace [] by your answer."""
    return []


@app.cell
def _():
    lab.check("08", closed_loop)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    A client that waits for answers sends least when the server is slowest, so its percentiles leave out
    the worst events. Measure from the time at which an event was intended, and send on schedule.

    *Next:* [lesson 9](lesson_09.py), with `tailpack lesson open 9`. *More:* [report fields](../reference/report-fields.md).
    """)
    return


if __name__ == "__main__":
    app.run()
