"""Runs each coroutine test in its own event loop."""

import asyncio
import inspect
from collections.abc import Awaitable

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test, for at most a minute."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(_within_a_minute(pyfuncitem.obj(**arguments)))
    return True


async def _within_a_minute(test: Awaitable[None]) -> None:
    async with asyncio.timeout(60) as limit:
        await test
    assert not limit.expired(), "the test was cancelled after a minute and swallowed the error"
