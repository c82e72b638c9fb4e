"""A replica that cannot send requested traces reports what to install."""

import sys

import pytest

from contracts.validation import InvalidSettingsError
from services.common import traces


def test_a_missing_traces_extra_is_reported_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidSettingsError, match=r"^TAILPACK_TRACE_ENDPOINT: .*pip install '.*\[traces\]'$"):
        traces.configure("order", {"TAILPACK_TRACE_ENDPOINT": "http://127.0.0.1:1/v1/traces"})
    traces.configure("order", {})
    assert traces.on is None
