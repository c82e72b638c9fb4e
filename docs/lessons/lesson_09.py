"""Lesson 9: Order, keys and partitioners."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="9 · Order, keys and partitioners")

with app.setup:
    import marimo as mo

    from tailpack import lab


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 9 · Order, keys and partitioners

    **Goal:** choose how keys are spread over partitions. 20 minutes, no Kafka. This is homework.

    To begin, run all cells: press ▷ at the bottom right.

    Events of one customer have the same key. If a key always goes to the same partition, its events
    stay in order. But customers are not equal: in a *Zipf* stream with exponent (skew) 1.2, the
    largest customer has a fifth of all events.

    A **partitioner** chooses the partition of each event:

    - `kg`: by a hash of the key, as Kafka does.
    - `pkg`, `potc`, `porc`, `ch`: each key may go to several partitions, by load.
    - `sg`: round robin, without regard to the key.
    - `cg`: virtual workers, which move from busy to idle workers.
    - `sticky_split`: only keys that are too large are split.

    *Imbalance*: by how much the busiest worker exceeds the mean. *Memory*: how many workers a key
    reaches on average, because each of them keeps its state. Above 1, events of one customer may
    overtake each other.

    **Guess before you run:** at skew 1.2 on nine workers, how far is the busiest worker above the mean
    under `kg`?
    """)
    return


@app.cell
def _():
    skew = mo.ui.slider(0.0, 2.0, step=0.2, value=1.2, label="skew (exponent of Zipf's law)", show_value=True)
    skew
    return (skew,)


@app.cell
def _(skew):
    names = ("kg", "pkg", "potc", "porc", "ch", "sg", "cg", "sticky_split")
    different = (1.0, 1.0, 0.5, 2.0, 1.0, 0.5, 1.0, 2.0, 1.0)
    equal = {name: lab.spread(name, skew=skew.value) for name in names}
    unequal = {name: lab.spread(name, skew=skew.value, capacities=different) for name in names}
    return (
        equal,
        names,
        unequal,
    )


@app.cell
def _(equal, names, skew):
    with lab.picture(f"skew {skew.value:g}: further down is better balanced, further left keeps keys together") as (
        drawn,
        (axes,),
    ):
        for each in names:
            point = (equal[each]["memory"], max(equal[each]["imbalance"], 1e-4))
            axes.plot(*point, "o", color="tab:blue")
            axes.annotate(each, point, (4, 4), textcoords="offset points")
        axes.set(xlabel="memory: workers per key", ylabel="imbalance", yscale="log")
    drawn
    return


@app.cell
def _(equal, names, unequal):
    mo.md(
        "| partitioner | memory | imbalance | imbalance, workers of different speeds |\n|---|---|---|---|\n"
        + "\n".join(
            f"| `{one}` | {equal[one]['memory']:.2f} | {equal[one]['imbalance']:.1%} | {unequal[one]['imbalance']:.1%} |"
            for one in names
        )
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Exercise

    Complete `choose`. Return the name of a partitioner for each need:

    - `"order"`: events of a customer never overtake each other.
    - `"memory"`: at most 1.1 workers per key, and at most 10 % imbalance.
    - `"unequal"`: at most 20 % imbalance, although some workers are slower.

    The check measures your choices on hidden streams.
    """)
    return


@app.function
def choose(need):
    """Return the name of a partitioner. Replace this by your answer."""
    return "sg"


@app.cell
def _():
    lab.check("09", choose)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What to remember

    Order needs one partition per key, and then the largest key limits the balance. A partitioner that
    splits keys buys balance with memory and order, so split only where a key is too large.

    *Next:* [lesson 10](lesson_10.py), with `tailpack lesson open 10`. *More:* [partitioners and order](../explanation/partitioners-and-order.md).
    """)
    return


if __name__ == "__main__":
    app.run()
