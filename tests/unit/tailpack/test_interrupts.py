"""Ctrl-C waits until what must not be cut in half is whole."""

import signal

import pytest

from tailpack.local.interrupts import uninterrupted


def test_the_signal_is_delivered_at_the_end_of_the_block() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the block's end is what raises
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            steps.append("whole")
        steps.append("never reached")
    assert steps == ["whole"]


def test_without_a_signal_nothing_happens_and_handlers_are_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with uninterrupted():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
