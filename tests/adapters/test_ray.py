# SPDX-License-Identifier: BSD-2-Clause
"""Ray Serve's handles with replicas that stand for engines."""
import asyncio
import collections
import gc
import os
import unittest
from unittest import mock

import bed
import ray
from kvroute import Pool
from kvroute.ray import KvrouteRouter
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.exceptions import RequestCancelledError
from ray.serve.request_router import RequestRouter


@serve.deployment(
    num_replicas=3, max_ongoing_requests=4,
    ray_actor_options={'num_cpus': .1},
    request_router_config=RequestRouterConfig(
        request_router_class='kvroute.ray:KvrouteRouter',
        request_router_kwargs={'affinity': 'auto'}))
class Engine:
    async def __call__(self, body):
        if body.get('die'):
            os._exit(1)
        await asyncio.sleep(body.get('seconds', .02))
        return serve.get_replica_context().replica_id.unique_id


def body_of(words, **more):
    return {'model': 'm', 'messages': bed.chat(words), **more}


class Router(unittest.TestCase):
    def test_ray_replica_that_fails_keeps_no_others_out(self):
        router = KvrouteRouter.__new__(KvrouteRouter)
        router.initialize_state()
        replicas = [mock.Mock(replica_id=mock.Mock(unique_id=name))
                    for name in ('x' * 5000, 'a:1')]
        with mock.patch.object(RequestRouter, 'update_replicas'), \
                self.assertLogs('kvroute'):
            router.update_replicas(replicas)
            with router._kvroute.call().request() as call:
                self.assertEqual(call.pick(), ['a:1'])
            router.update_replicas([])
        self.assertEqual(router._served, set())


class Ray(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False,
                 _node_ip_address='127.0.0.1')
        cls.handle = serve.run(Engine.bind(), route_prefix=None)

    @classmethod
    def tearDownClass(cls):
        serve.shutdown()
        ray.shutdown()

    def pool(self):
        return next(o for o in gc.get_objects() if isinstance(o, Pool))

    async def ended(self):
        for _ in range(250):
            if bed.leases(self.pool()) == 0:
                return
            await asyncio.sleep(.02)
        self.fail('a call did not end')

    async def whole(self):
        where = collections.defaultdict(set)
        bodies = [body_of(f'chat{i}') for i in range(6)]
        for _ in range(4):
            for i, body in enumerate(bodies):
                where[i].add(await self.handle.remote(body))
                body['messages'] += [{'role': 'assistant', 'content': 'yes'},
                                     {'role': 'user', 'content': 'go on'}]
        self.assertEqual([len(s) for s in where.values()], [1] * 6)
        self.assertEqual(len(set().union(*where.values())), 3)
        await self.ended()

        # Five at a time for each place of a replica.
        served = collections.Counter(await asyncio.gather(*(
            self.handle.remote(body_of(f'new{i}')) for i in range(60))))
        self.assertEqual(len(served), 3)
        self.assertLess(max(served.values()), 40)
        await self.ended()

        responses = [self.handle.remote(body_of(f'busy{i}', seconds=30))
                     for i in range(20)]
        await asyncio.sleep(1)
        for response in responses:
            response.cancel()
        for error in await asyncio.gather(*responses, return_exceptions=True):
            self.assertIsInstance(error, (RequestCancelledError,
                                          asyncio.CancelledError))
        await self.ended()

        dead = where[0].pop()
        with self.assertRaises(ray.exceptions.ActorDiedError):
            await self.handle.remote({**bodies[0], 'die': True})
        for _ in range(2):
            for body in bodies:
                self.assertNotEqual(await self.handle.remote(body), dead)
        await self.ended()

    def test_ray_keeps_chats_and_ends_calls(self):
        asyncio.run(asyncio.wait_for(self.whole(), 150))
