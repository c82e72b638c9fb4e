"""Tests that are coroutines run in an event loop of their own."""

import asyncio
import inspect
from collections.abc import Awaitable

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end, within a minute."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(_within_a_minute(pyfuncitem.obj(**arguments)))
    return True


async def _within_a_minute(test: Awaitable[None]) -> None:
    async with asyncio.timeout(60) as limit:
        await test
    assert not limit.expired(), "cancelled after a minute, which the test took for what it expected"
