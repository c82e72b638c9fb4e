"""What the tests of the compiled engines share."""

import pytest

from autoscaler.simulator import window


@pytest.fixture(scope="module", params=["whole", "little by little"])
def _windows(request):
    """The fast engines load what they are fed at once, or by a few events, so that they forget and make room often."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "little by little":
            patched.setattr(window, "LOADED_AT_ONCE", 5)
            patched.setattr(window, "BLOCK", 3)
        yield
