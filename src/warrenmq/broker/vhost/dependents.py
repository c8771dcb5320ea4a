"""What was found out about names, and falls when one of them changes.

Duty: who depends on which name. What is found out is not known here: routes (``publish/routes.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

SWEEP_AT: Final = 4096  # names with dependents, before those without living ones are forgotten


class Dependent:
    """A result that holds as long as no name it depends on changes."""

    def __init__(self) -> None:
        self.valid: bool = True

    def fall(self) -> None:
        """It holds no longer."""
        self.valid = False


@final
class Dependents:
    """The routes that fall when a name changes. Names are exchange names, or queue names behind the default
    exchange."""

    def __init__(self) -> None:
        self._routes: dict[str, list[Dependent]] = {}
        self._limit: dict[str, int] = {}
        self._sweep_at: i64 = SWEEP_AT

    def add(self, name: str, route: Dependent) -> None:
        routes = self._routes.get(name)
        if routes is None:
            self._routes[name] = [route]
            if len(self._routes) >= self._sweep_at:
                self._sweep()
            return
        routes.append(route)
        limit: i64 = self._limit.get(name, 256)
        if len(routes) > limit:  # forget those that fell for other reasons
            alive = [r for r in routes if r.valid]
            self._routes[name] = alive
            self._limit[name] = max(256, 2 * len(alive))

    def _sweep(self) -> None:
        """Forget names that no living route depends on: keys that were published to once."""
        alive: dict[str, list[Dependent]] = {}
        for name, routes in self._routes.items():
            for route in routes:
                if route.valid:
                    alive[name] = routes
                    break
        self._routes = alive
        self._limit = {name: limit for name, limit in self._limit.items() if name in alive}
        self._sweep_at = max(SWEEP_AT, 2 * len(alive))

    def all_changed(self) -> None:
        for name in list(self._routes):
            self.changed(name)

    def changed(self, name: str) -> None:
        routes = self._routes.pop(name, None)
        if routes is not None:
            self._limit.pop(name, None)
            for route in routes:
                route.fall()
