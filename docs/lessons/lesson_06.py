"""Lesson 6: Plans have prices."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="6 · Plans have prices")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 6 · Plans have prices

    **Goal:** see how a policy chooses between plans. 20 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    The policy `tail-aware` compares plans once a second. It predicts the late events of each plan, and
    adds up: the replicas that the plan pays, and its late events, each at a **price**. It takes the
    cheapest plan.

    It predicts with **Lindley's recursion**. An event starts when it has arrived and the event before
    it is done:

    ```python
    free_s, late = 0.0, 0
    for arrival_s in arrivals_s:
        done_s = max(arrival_s, free_s) + service_s
        late += done_s - arrival_s > target_s
        free_s = done_s
    ```

    **Guess before you run:** if late events become ten times as expensive, how much more does the run
    cost?
    """)
    return


@app.cell
def _():
    price = mo.ui.slider(
        steps=(0.002, 0.01, 0.05, 0.3, 1.0, 10.0), value=0.05, label="price of a late event", show_value=True
    )
    price
    return (price,)


@app.cell
def _(price):
    run = lab.simulate("w1", policy="tail-aware", price=price.value, burst_phase_s=0.2, duration_s=240)
    run.decisions()
    return (run,)


@app.cell
def _():
    at = mo.ui.slider(1, 239, value=58, label="decision at second", show_value=True)
    at
    return (at,)


@app.cell
def _(at, run):
    choice = run.decision(at=at.value)
    mo.md(
        f"The run: {run.in_time:.3%} in time, {run.replica_minutes:.2f} replica-minutes.\n\n"
        f"The decision: **{choice.action}**: {choice.reason}\n\n| replicas | moved | predicted in time | cost |\n|---|---|---|---|\n"
        + "\n".join(
            f"| {one.replicas} | {one.moved} | {one.in_sla:.3%} | {one.cost_s:.2f} |" for one in choice.alternatives
        )
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The first row is the plan that was chosen. *Cost* is in replica-seconds, with late events at their
    price.

    1. Find a second with two plans. Which would you choose? Why did the policy choose otherwise?
    2. Change the price. What happens to the number of plans?

    The picture shows what three prices cost over the whole four minutes.
    """)
    return


@app.cell
def _():
    lab.compare(
        "w1",
        [("tail-aware", {"price": each}) for each in (0.002, 0.05, 10.0)],
        seeds=1,
        burst_phase_s=0.2,
        duration_s=240,
    ).front()
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise

    Complete `choose_price`. At your price, the first four minutes of W1 must have 99.9 % in time, for
    at most 8.52 replica-minutes, whenever in the second its bursts begin. The check tries three
    beginnings, and takes up to half a minute.
    """)
    return


@app.function
def choose_price():
    """Return the price of a late event, a positive number. Replace None by your answer."""
    return None


@app.cell
def _():
    lab.check("06", choose_price)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    A plan is good if its replicas cost less than the late events that they prevent. The price of a late
    event turns "how many nines?" into a decision between two plans.

    *Next:* [lesson 7](lesson_07.py), with `tailpack lesson open 7`. *More:* [the policy](../explanation/the-policy.md).
    """)
    return


if __name__ == "__main__":
    app.run()
