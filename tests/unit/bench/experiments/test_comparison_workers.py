"""Workers: every experiment has an outcome, and nobody is left behind."""

import multiprocessing
from contextlib import closing

import comparison_work
import psutil

from bench.experiments.experiment import experiment
from bench.experiments.workers import Failure, outcomes

ASKED = [experiment("w1", "linear", seed=seed) for seed in range(1, 8)]


def test_whatever_happens_to_one_experiment_the_others_are_run() -> None:
    found = dict(outcomes(ASKED, comparison_work.eventful, processes=2))
    assert set(found) == set(ASKED), "each has an outcome"
    assert found[ASKED[1]] == Failure("ZeroDivisionError: no replica left")
    assert found[ASKED[2]] == Failure("payment.partitions = 0: must be at least 1")
    died = found[ASKED[3]]
    assert isinstance(died, Failure)
    assert "exit status 9" in died.why
    assert all(found[ASKED[number]] == comparison_work.told(ASKED[number]) for number in (0, 4, 5, 6))
    assert not multiprocessing.active_children()


def test_an_experiment_that_kills_the_only_process_is_not_waited_for() -> None:
    found = dict(outcomes(ASKED[3:5], comparison_work.eventful, processes=1))
    assert found[ASKED[4]] == Failure("not begun: every process had died")


def test_who_stops_listening_leaves_no_process_behind() -> None:
    with closing(outcomes(ASKED, comparison_work.endless, processes=2)) as found:
        assert next(found) == (ASKED[0], comparison_work.told(ASKED[0]))
        started = [one.pid for one in multiprocessing.active_children()]
        assert len(started) == 2
    assert not multiprocessing.active_children()
    assert not any(psutil.pid_exists(pid) for pid in started if pid)
