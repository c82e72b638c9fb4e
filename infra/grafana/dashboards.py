"""The Grafana dashboards as lists of panels. `python infra/grafana/dashboards.py` writes them into this folder."""

import json
from pathlib import Path
from typing import Any, Final

from grafanalib._gen import DashboardEncoder
from grafanalib.core import Annotations, Dashboard, GridPos, Table, Target, Time, TimeSeries

HERE: Final = Path(__file__).parent
SOURCE: Final = {"type": "prometheus", "uid": "tailpack"}
"""Data source of provisioning/datasources/prometheus.yml."""
WIDE, HIGH = 12, 8
Query = tuple[str, str]
"""(Legend, PromQL)."""

CONSUMED: Final = "tailpack_consumer_latency_seconds"
TAKEN: Final = "tailpack_consumer_partitions_taken_total"
OWNERS: Final = "sum by (partition, replica) (tailpack_partition_owner)"


def rate(metric: str, by: str = "group", window: str = "1m") -> str:
    """Return the query for a counter's growth per second, summed by a label."""
    return f"sum by ({by}) (rate({metric}[{window}]))"


def late_over_budget(window: str) -> str:
    """Return the query for the burn rate: how many times faster than allowed the SLO budget is used."""
    in_time = rate("tailpack_consumer_in_sla_total", window=window)
    events = rate(f"{CONSUMED}_count", window=window)
    return f"(1 - {in_time} / {events}) / max by (group) (tailpack_consumer_sla_budget_ratio)"


def quantile(share: float, metric: str, by: str = "") -> str:
    """Return the query for a percentile of a histogram over the last minute."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket[1m])))"


def typical(metric: str) -> tuple[Query, Query]:
    """Return the queries for the median and the 99th percentile of a histogram."""
    return ("p50", quantile(0.5, metric)), ("p99", quantile(0.99, metric))


IN_SLA: Final = f"{rate('tailpack_consumer_in_sla_total')} / {rate(f'{CONSUMED}_count')}"


def panel(title: str, unit: str, *queries: Query, description: str = "") -> TimeSeries:
    """Return a panel with curves over time."""
    return TimeSeries(title=title, unit=unit, description=description, dataSource=SOURCE, targets=_targets(queries))


def _targets(queries: tuple[Query, ...], **options: Any) -> list[Target]:
    return [
        Target(expr=expr, legendFormat=legend, refId=letter, datasource=SOURCE, **options)
        for letter, (legend, expr) in zip("ABCDEFGH", queries, strict=False)
    ]


def _mark(name: str, colour: str, expr: str, text: str) -> dict[str, Any]:
    return {
        "name": name, "datasource": SOURCE, "enable": True, "iconColor": colour,
        "expr": expr, "step": "1s", "titleFormat": name, "textFormat": text,
    }  # fmt: skip


MARKS: Final = (
    _mark("plan", "blue", "changes(tailpack_plan_epoch[5s]) > 0", "a new plan was written"),
    _mark("handover", "orange", f"changes({TAKEN}[5s]) > 0", "{{replica}} has taken over partitions"),
)

DASHBOARDS: Final[dict[str, tuple[str, tuple[TimeSeries | Table, ...]]]] = {
    "sla": (
        "tailpack: the SLO",
        (
            panel(
                "Share in time, last minute",
                "percentunit",
                ("{{group}}", IN_SLA),
                ("SLO", "1 - max by (group) (tailpack_consumer_sla_budget_ratio)"),
            ),
            panel(
                "Latency, from intended send time to completion",
                "s",
                *typical(CONSUMED),
                ("p99.9", quantile(0.999, CONSUMED)),
                ("W", "max(tailpack_consumer_latency_target_seconds)"),
                description="Percentiles are interpolated between the histogram's bounds, which include the target W",
            ),
            panel(
                "Burn rate: above 1, the SLO budget runs out",
                "short",
                ("1 min", late_over_budget("1m")),
                ("5 min", late_over_budget("5m")),
                ("1 h", late_over_budget("1h")),
            ),
            panel(
                "Completed events",
                "ops",
                ("{{group}}", rate("tailpack_consumer_events_total")),
                ("failed, {{group}}", rate("tailpack_consumer_events_failed_total")),
            ),
            panel(
                "Longest waiting event", "s", ("{{group}}", "max by (group) (tailpack_consumer_partition_lag_seconds)")
            ),
        ),
    ),
    "group": (
        "tailpack: the group",
        (
            panel("Lag in events", "short", ("{{partition}}", "tailpack_partition_lag_events")),
            panel(
                "Lag in seconds: age of the oldest waiting event",
                "s",
                ("{{partition}}", "max by (partition) (tailpack_consumer_partition_lag_seconds)"),
            ),
            panel("Replicas", "short", ("{{state}}", "tailpack_replicas")),
            panel("Partitions served", "short", ("{{replica}}", "tailpack_consumer_partitions")),
            Table(
                title="Owners of partitions",
                dataSource=SOURCE,
                targets=_targets((("", OWNERS),), format="table", instant=True),
                description="By the plan. The previous panel shows the partitions that each replica serves",
            ),
            panel(
                "Arrivals, compared with the service rate of one replica",
                "ops",
                ("{{partition}}", "tailpack_partition_arrival_rate_events_per_second"),
                ("service rate (μ)", "tailpack_service_rate_events_per_second"),
            ),
            panel("Handover pause of partitions", "s", *typical("tailpack_consumer_handover_pause_seconds")),
            panel(
                "Busy share", "percentunit", ("{{replica}}", rate("tailpack_consumer_busy_seconds_total", "replica"))
            ),
            panel("Healthy: 1", "short", ("{{replica}}", "tailpack_consumer_healthy")),
        ),
    ),
    "controller": (
        "tailpack: the controller",
        (
            panel("Decisions", "ops", ("{{action}}", rate("tailpack_decisions_total", "action"))),
            panel(
                "Prediction and measurement: share in time",
                "percentunit",
                ("predicted by the decision", "tailpack_predicted_in_sla_ratio"),
                ("measured by {{group}}", IN_SLA),
            ),
            panel(
                "Prediction and measurement: handover pause",
                "s",
                ("planned (t_r)", "tailpack_rebalance_time_seconds"),
                ("measured pause, p99", quantile(0.99, "tailpack_consumer_handover_pause_seconds")),
            ),
            panel("Time until all members adopt a plan", "s", *typical("tailpack_plan_adoption_seconds")),
            panel("Plans written", "short", ("{{action}}", "tailpack_plans_total")),
            panel("Problems by component", "short", ("{{type}}", "tailpack_condition")),
            panel("Leader: 1", "short", ("{{instance}}", "tailpack_leading")),
            panel(
                "Ticks",
                "s",
                ("duration, p99", quantile(0.99, "tailpack_tick_seconds")),
                ("age of the last one", "time() - tailpack_last_tick_timestamp_seconds"),
            ),
            panel("State changes of replicas", "short", ("{{change}}", "tailpack_replica_changes_total")),
            panel(
                "Ticks without data and lost records",
                "short",
                ("ticks without data", "tailpack_ticks_without_data_total"),
                ("journal records lost", "tailpack_journal_lost_total"),
            ),
        ),
    ),
    "services": (
        "tailpack: the services",
        (
            panel("Records written", "ops", ("{{service}}", rate("tailpack_service_written_total", "service"))),
            panel(
                "Dropped and rejected records",
                "ops",
                ("{{service}}: repeats", rate("tailpack_service_duplicates_dropped_total", "service")),
                ("{{service}}: dead letters", rate("tailpack_service_refused_total", "service")),
                ("{{service}}: fenced payments", rate("tailpack_service_fenced_total", "service")),
            ),
            panel("Unacknowledged records", "short", ("{{service}}", "tailpack_service_unacknowledged")),
            panel(
                "Oldest unacknowledged record", "s", ("{{service}}", "tailpack_service_oldest_unacknowledged_seconds")
            ),
            panel("Healthy: 1", "short", ("{{service}}", "tailpack_service_healthy")),
            panel(
                "Events sent",
                "ops",
                ("sent", "sum(rate(tailpack_generator_sent_total[1m]))"),
                ("acknowledged", "sum(rate(tailpack_generator_acknowledged_total[1m]))"),
                ("failed", "sum(rate(tailpack_generator_failed_total[1m]))"),
            ),
            panel(
                "Lateness of the load generator",
                "s",
                ("p99", "tailpack_generator_lateness_p99_seconds"),
                ("limit of a valid run", "tailpack_generator_lateness_limit_seconds"),
            ),
        ),
    ),
}


def queries() -> dict[str, str]:
    """Return place → query, for all panels and marks of all dashboards."""
    panels = {
        f"{name}: {chart.title}, {target.refId}": target.expr
        for name, (_, shown) in DASHBOARDS.items()
        for chart in shown
        for target in chart.targets
    }
    return panels | {f"mark {mark['name']}": mark["expr"] for mark in MARKS}


def rendered() -> dict[Path, str]:
    """Return path → content of the dashboard files."""
    return {HERE / f"{name}.json": _file(name, *what) for name, what in DASHBOARDS.items()}


def _file(name: str, title: str, panels: tuple[TimeSeries | Table, ...]) -> str:
    for number, chart in enumerate(panels):
        chart.id = number + 1
        chart.gridPos = GridPos(h=HIGH, w=WIDE, x=WIDE * (number % 2), y=HIGH * (number // 2))
    dashboard = Dashboard(
        title=title,
        uid=f"tailpack-{name}",
        tags=["tailpack"],
        panels=list(panels),
        annotations=Annotations(list=list(MARKS)),
        time=Time("now-15m", "now"),
        refresh="5s",
        graphTooltip=1,
        timezone="browser",
    )
    return json.dumps(dashboard.to_json_data(), cls=DashboardEncoder, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")
