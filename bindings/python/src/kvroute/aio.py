# SPDX-License-Identifier: BSD-2-Clause
"""For asyncio: calls that wait for a server, questions to engines, ticks."""
from __future__ import annotations

import asyncio
from typing import (Awaitable, Callable, Dict, Iterable, List, Optional, Set,
                    Tuple)

from ._library import Unavailable
from ._pool import Call, Poll, Pool

_PAUSE = .05  # seconds; the library asks for less while calls wait

Get = Callable[[str], Awaitable[Tuple[int, bytes]]]


class Background:
    """Does what is due of a pool while its block runs.

    get(url) asks an engine for its load or capacity, as the options poll= and
    capacity=auto request it, and returns status and body; an exception is no
    response. Of one event loop.
    """

    def __init__(self, pool: Pool, get: Optional[Get] = None) -> None:
        self._pool, self._get = pool, get
        self._turns: Dict[Call, asyncio.Future[None]] = {}
        self._tasks: Set[asyncio.Future[None]] = set()

    async def pick(self, call: Call, allow: Optional[Iterable[str]] = None,
                   fallbacks: bool = False) -> List[str]:
        """As Call.pick(); with the option queue= it waits while all servers
        are full."""
        while True:
            try:
                return call.pick(allow, fallbacks)
            except Unavailable:
                call.wait()
            allow = None  # the call keeps it
            await self._turn(call)

    async def _turn(self, call: Call) -> None:
        turn = self._turns[call] = asyncio.get_running_loop().create_future()
        self._wake.set()
        try:
            await turn
        finally:
            del self._turns[call]

    async def __aenter__(self) -> Background:
        self._wake = asyncio.Event()
        self._start(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        while True:
            pause = self._pool.tick()
            for call in self._pool.turns():
                turn = self._turns.get(call)
                if turn is not None and not turn.done():
                    turn.set_result(None)
            self._ask()
            try:
                await asyncio.wait_for(self._wake.wait(), min(pause, _PAUSE))
            except asyncio.TimeoutError:
                pass
            self._wake.clear()

    def _ask(self) -> None:
        while self._get is not None:
            poll = self._pool.poll()
            if poll is None:
                return
            self._start(self._question(self._get, poll))

    async def _question(self, get: Get, poll: Poll) -> None:
        try:
            status, body = await get(f"http://{poll.server}{poll.path}")
        except Exception:
            status, body = 0, b""
        self._pool.polled(poll, status, body)
