"""Lesson 10: Your policy."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="10 · Your policy")

with app.setup:
    import math

    import marimo as mo

    from autoscaler.model import Decision, GroupObservation
    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 10 · Your policy

    **Goal:** write an autoscaler that works on loads you have not seen. 30 minutes, no Kafka.

    To begin, run all cells: press ▷ at the bottom right.

    A policy has a method `decide`. Once per interval it gets an **observation** of the group, and
    returns a **decision**. An observation has, among others:

    - `partitions`: for each one `arrival_rate` (events/s) and `lag` (waiting events)
    - `replicas`: those that were requested; `ready` says whether one serves
    - `service_rate`: events/s of one replica
    - `startup_s`: time until a new replica serves
    - `at_s`: the time in seconds

    `lab.scale_to(observation, count, "payment", reason)` makes a decision for a number of replicas.

    **Guess before you run:** the policy below starts enough replicas for the present load. On random
    loads with slow starts, which share of events is in time?
    """)
    return


@app.class_definition
class Mine:
    """Enough replicas for the events that arrive."""

    name = "mine"

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the plan for this observation."""
        rate = sum(load.arrival_rate for load in observation.partitions)
        count = max(1, math.ceil(rate / observation.service_rate))
        return lab.scale_to(observation, min(count, len(observation.partitions)), "payment", f"{rate:.0f} events/s")


@app.cell
def _():
    number = mo.ui.slider(1, 100, value=13, label="number of the random scenario", show_value=True)
    number
    return (number,)


@app.cell
def _(number):
    counts = range(1, min(9, lab.random_partitions(number.value)) + 1, 2)
    found = lab.compare(
        f"random-{number.value}", [Mine, "linear", "keda-hpa", *(f"static-{n}" for n in counts)], seeds=1
    )
    found.front()
    return (found,)


@app.cell
def _(found):
    found
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Improve `Mine`, and look at it on five numbers. Ideas:

    1. Events that wait (`lag`) need replicas, too.
    2. A replica that is started now helps after `startup_s`. Leave room for what arrives until then.
    3. Replicas that leave too early must start again. Wait before you remove one.

    ## Exercise

    The check draws three scenarios in which some fixed count has 99.9 % in time. Summed over them,
    `Mine` must have **more events in time than `linear`**, and must **cost less than the cheapest fixed
    counts** that have 99.9 %. It takes up to a minute.
    """)
    return


@app.cell
def _():
    lab.check("10", Mine)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Submit the file to the league: `tailpack dev league --seed SECRET policies/*.py`. It compares all
    policies of the class on the same hidden scenarios.

    ## What to remember

    A policy sees only the past, so it needs room for what it cannot see. Test it on loads that you did
    not choose, against fixed counts.

    *More:* [your own policy](../tutorials/own-policy.md).
    """)
    return


if __name__ == "__main__":
    app.run()
