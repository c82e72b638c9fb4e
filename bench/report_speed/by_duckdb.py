"""The figures as somebody gets them from DuckDB: three questions in SQL. Its discrete quantile is the nearest rank."""

from typing import Final

import duckdb

from bench.report_speed.answer import RANKS, SECOND_RANKS, Answer, Figures, Question

TOTALS: Final = """
select count(*) filter (where not refused), count(*) filter (where latency_us <= {target_us}),
       count(*) filter (where done_us is null and not refused), count(*) filter (where refused),
       quantile_disc(latency_us, [{ranks}])
from (select *, done_us - intended_us as latency_us, done_us is null and dead_letters > 0 as refused from {events})
"""
SECONDS: Final = """
select second, count(*), quantile_disc(latency_us, [{second_ranks}])
from (select (intended_us - {started_us}) // 1000000 as second, done_us - intended_us as latency_us from {events})
group by second order by second
"""
DONE: Final = """
select (done_us - {started_us}) // 1000000 as second, count(*) from {events}
where done_us is not null group by second order by second
"""


def answer(question: Question) -> Answer:
    """Return the figures."""
    files = str(question.events / "*.parquet").replace("'", "''")
    words = {
        "events": f"read_parquet('{files}')",
        "started_us": question.started_us,
        "target_us": question.target_us,
        "ranks": _decimals(RANKS),
        "second_ranks": _decimals(SECOND_RANKS),
    }
    with duckdb.connect() as database:
        database.execute("set enable_progress_bar = false")
        counts = database.execute(TOTALS.format_map(words)).fetchall()[0]
        seconds = database.execute(SECONDS.format_map(words)).fetchall()
        done = database.execute(DONE.format_map(words)).fetchall()
    return Answer(
        figures=Figures(
            events=counts[0],
            in_sla=counts[1],
            lost=counts[2],
            refused=counts[3],
            latency_us=tuple(counts[4] or ()),
            seconds=tuple((second, count, *(at or (None, None, None))) for second, count, at in seconds),
            done=tuple(done),
        )
    )


def _decimals(ranks: tuple[int, ...]) -> str:
    """Return the ranks as decimals: as binary fractions ⌈q·n⌉ may be one too high."""
    return ", ".join(f"{ppm // 1_000_000}.{ppm % 1_000_000:06d}" for ppm in ranks)
