# SPDX-License-Identifier: BSD-2-Clause
"""kvroute.aio, without engines."""
import asyncio
import time
import unittest

import bed
from kvroute import Pool, Unavailable
from kvroute.aio import Background

SERVER = '10.0.0.1:8000'


def begin(pool, words='one'):
    return pool.call().request(bed.body(bed.chat(words)))


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(.002)

    await asyncio.wait_for(wait(), 20)


class Aio(unittest.IsolatedAsyncioTestCase):
    async def test_calls_wait_and_go_in_order(self):
        pool, order = Pool({SERVER: 'max_conns=1'}, queue=8), []

        async def pass_one(background, i):
            with begin(pool, f'w{i}') as call:
                order.append((i, await background.pick(call)))
                await asyncio.sleep(0)
                call.response(200)

        async with Background(pool) as background:
            first = begin(pool)
            self.assertEqual(await background.pick(first), [SERVER])
            tasks = []
            for i in range(3):
                tasks.append(asyncio.create_task(pass_one(background, i)))
                await until(lambda: len(background._turns) == len(tasks))
                # Requests of one millisecond have no order.
                then = time.monotonic_ns() // 10**6
                await until(lambda: time.monotonic_ns() // 10**6 > then)
            self.assertEqual(order, [])
            first.end()
            await asyncio.wait_for(asyncio.gather(*tasks), 20)
        self.assertEqual(order, [(i, [SERVER]) for i in range(3)])
        self.assertEqual(bed.leases(pool), 0)

    async def test_time_in_line_ends(self):
        pool = Pool({SERVER: 'max_conns=1'}, queue=8, queue_timeout='20ms')
        async with Background(pool) as background:
            first = begin(pool)
            await background.pick(first)
            with self.assertRaises(Unavailable) as late:
                await asyncio.wait_for(background.pick(begin(pool, 'two')), 20)
            self.assertEqual(late.exception.status, 429)

    async def test_without_a_line_none_waits(self):
        pool = Pool({SERVER: 'max_conns=1'})
        async with Background(pool) as background:
            first = begin(pool)
            await background.pick(first)
            with self.assertRaises(Unavailable) as full:
                await background.pick(begin(pool, 'two'))
            self.assertEqual(full.exception.status, 429)
            with self.assertRaises(Unavailable) as none:
                await background.pick(begin(pool, 'two'), allow=())
            self.assertEqual(none.exception.status, 503)

    async def test_a_task_that_is_cancelled_leaves_the_line(self):
        pool = Pool({SERVER: 'max_conns=1'}, queue=8)

        async def leave(background):
            with begin(pool, 'two') as call:
                await background.pick(call)

        async with Background(pool) as background:
            first = begin(pool)
            await background.pick(first)
            task = asyncio.create_task(leave(background))
            await until(lambda: background._turns)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            first.end()
            third = begin(pool, 'three')
            await asyncio.wait_for(background.pick(third), 20)
        self.assertEqual(background._turns, {})

    async def test_engines_are_asked(self):
        asked = []

        async def get(url):
            asked.append(url)
            if len(asked) % 2:
                raise OSError('refused')
            return 200, b'vllm:num_requests_running 1\n'

        pool = Pool({SERVER: 'capacity=auto'}, poll='100ms')
        async with Background(pool, get):
            await until(lambda: f'http://{SERVER}/metrics' in asked and
                        len(asked) > 3)

    async def test_questions_end_with_the_block(self):
        ended = []

        async def get(url):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(url)

        async with Background(Pool([SERVER], poll='100ms'), get) as background:
            await until(lambda: len(background._tasks) > 1)
        self.assertEqual(len(ended), 1)
