"""HTTP requests under the watchdog: each stretch in which one does not give way counts for a pass of the event loop.

Not compiled, unlike the watchdog: what serves HTTP looks at an application to see that it is a coroutine function.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Generator
from typing import Any

from warrenmq.server.watchdog import Watchdog


class Measured:
    """An awaitable around a coroutine that measures each stretch in which it does not give way."""

    def __init__(self, watchdog: Watchdog, ran: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._watchdog = watchdog
        self._ran = ran
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        watchdog, coroutine = self._watchdog, self._coroutine
        value: Any = None
        thrown: BaseException | None = None
        while True:
            watchdog.enter()
            try:
                wanted = coroutine.send(value) if thrown is None else coroutine.throw(thrown)
            except StopIteration as over:
                return over.value
            finally:
                watchdog.lap(self._ran)
                watchdog.leave()
            value = thrown = None
            try:
                value = yield wanted
            except BaseException as error:
                thrown = error


async def measured_parts(watchdog: Watchdog, ran: str, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of an answer that is made as it is sent: a task of its own does that, outside of its request's."""
    making: Any = aiter(parts)
    while True:
        try:
            part = await Measured(watchdog, ran, making.__anext__())
        except StopAsyncIteration:
            return
        yield part


def measured(app: Any, watchdog: Watchdog) -> Any:
    """An ASGI application whose requests are watched."""

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        ran = f"HTTP {scope.get('method', '')} {scope.get('path', '')}"
        await Measured(watchdog, ran, app(scope, receive, send))

    return watched
