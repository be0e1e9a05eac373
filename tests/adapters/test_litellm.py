# SPDX-License-Identifier: BSD-2-Clause
"""LiteLLM's Router with engines."""
import asyncio
import collections
import gc
import os
import tempfile
import threading
import time
import warnings
from unittest import mock

os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'  # it would ask GitHub

import bed
import litellm
from kvroute.litellm import KvrouteStrategy

litellm.suppress_debug_info = True


class LiteLLM(bed.EngineTest):
    def setUp(self):
        warnings.simplefilter('ignore')
        super().setUp()
        self.router = litellm.Router(num_retries=2, model_list=[{
            'model_name': 'm', 'litellm_params': {
                'model': 'openai/m', 'api_base': f'http://{name}/v1',
                'api_key': 'x'}, 'model_info': {'id': name}}
            for name in self.names()])
        self.strategy = KvrouteStrategy(self.router, affinity='auto')

    def tearDown(self):
        litellm.callbacks.clear()

    @property
    def pool(self):
        return self.strategy.pools['m']

    def run_and_end(self, task):
        """All calls end: those that LiteLLM reports, and the others when it
        forgets them."""
        async def whole():
            await task()
            for _ in range(250):
                gc.collect()
                if bed.leases(self.pool) == 0:
                    return
                await asyncio.sleep(.02)
            self.fail('a call did not end')

        asyncio.run(whole())

    async def ask(self, messages, **more):
        return await self.router.acompletion(
            model='m', messages=messages, max_tokens=8, **more)

    def test_litellm_keeps_chats(self):
        async def chats():
            where = collections.defaultdict(set)
            all_messages = [bed.chat(f'chat{i}') for i in range(6)]

            async def turn(i):
                r = await self.ask(all_messages[i])
                where[i].add(r._hidden_params['model_id'])
                all_messages[i] += [dict(r.choices[0].message),
                                    {'role': 'user', 'content': 'go on'}]

            for _ in range(4):
                await asyncio.gather(*map(turn, range(6)))
            self.assertEqual([len(s) for s in where.values()], [1] * 6)
            self.assertEqual(set().union(*where.values()), set(self.names()))

        self.run_and_end(chats)
        self.assertGreater(bed.usages(self.pool), 6 * 4 * 400)

    def test_litellm_reports_usage_of_all_kinds(self):
        text = 'many words ' * 100
        messages = bed.chat('kinds')

        async def kinds():
            for name, request in (
                    ('chat', lambda: self.ask(messages)),
                    ('text', lambda: self.router.atext_completion(
                        model='m', prompt=text, max_tokens=4)),
                    ('responses', lambda: self.router.aresponses(
                        model='m', input=text)),
                    ('messages', lambda: self.router.aanthropic_messages(
                        model='m', messages=messages, max_tokens=5))):
                before = bed.usages(self.pool) if self.strategy.pools else 0
                await request()
                for _ in range(250):
                    if bed.usages(self.pool) > before:
                        break
                    await asyncio.sleep(.02)
                else:
                    self.fail(f'no usage of {name}')
            await self.router.aembedding(model='m', input=['a b'])
            before = bed.usages(self.pool)
            async for _ in await self.ask(
                    messages, stream=True,
                    stream_options={'include_usage': True}):
                pass
            await asyncio.sleep(.5)
            self.assertGreater(bed.usages(self.pool), before)

        self.run_and_end(kinds)

    def test_litellm_avoids_an_engine_that_is_killed(self):
        async def chats():
            messages = [bed.chat(f'kill{i}') for i in range(6)]
            await asyncio.gather(*map(self.ask, messages))
            self.engines[0].kill()
            for _ in range(2):
                answers = await asyncio.gather(*map(self.ask, messages))
                self.assertEqual({r._hidden_params['model_id']
                                  for r in answers}, {self.engines[1].name})

        self.run_and_end(chats)

    def test_litellm_calls_of_clients_that_leave(self):
        async def leave():
            stream = await self.router.acompletion(
                model='m', messages=bed.chat('leave'), max_tokens=9000,
                stream=True)
            async for _ in stream:
                break
            self.assertEqual(bed.leases(self.pool), 1)
            del stream, _
            task = asyncio.create_task(self.router.acompletion(
                model='m', messages=bed.chat('cancel'), max_tokens=9000))
            await asyncio.sleep(.2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.run_and_end(leave)

    def test_litellm_metadata_of_the_caller(self):
        metadata = {'user': 'x'}

        async def twice():
            await asyncio.gather(*(self.ask(bed.chat(f'meta{i}'),
                                            metadata=metadata)
                                   for i in range(2)))

        self.run_and_end(twice)

    def test_litellm_without_deployments(self):
        for name in self.names():
            self.engine(name).kill()

        async def fails():
            with self.assertRaises(Exception) as caught:
                await self.ask(bed.chat('none'))
            self.assertIn(getattr(caught.exception, 'status_code', 0),
                          (500, 503))

        self.run_and_end(fails)

    def deployment(self, group, name):
        return {'model_name': group, 'litellm_params': {
            'model': 'openai/m', 'api_base': f'http://{name}/v1',
            'api_key': 'x'}, 'model_info': {'id': name}}

    def pick(self, strategy, group):
        return strategy.get_available_deployment(
            group, bed.chat(group), request_kwargs={})['model_info']['id']

    def test_litellm_models_of_no_group(self):
        for model in ('ghost', 'other'):
            with self.assertRaises(litellm.ServiceUnavailableError):
                self.pick(self.strategy, model)
        self.assertEqual(self.strategy.pools, {})

    def test_litellm_regions_of_groups(self):
        with tempfile.TemporaryDirectory(dir=bed.scratch) as folder:
            groups = ['a/b', 'a_b', 'a%2Fb']
            strategy = KvrouteStrategy(litellm.Router(model_list=[
                self.deployment(g, f'{n}:1') for n, g in enumerate(groups)]),
                region=os.path.join(folder, 'region'))
            for n, group in enumerate(groups):
                self.assertEqual(self.pick(strategy, group), f'{n}:1')
            self.assertEqual(
                [n for n in sorted(os.listdir(folder)) if '.lock' not in n],
                ['region.a%252Fb', 'region.a%2Fb', 'region.a_b'])

    def test_litellm_picks_deployments_of_the_router(self):
        """Others of the region are those of other processes."""
        both, one = (KvrouteStrategy(litellm.Router(model_list=[
            self.deployment('m', name) for name in names]))
            for names in (('a:1', 'b:1'), ('b:1',)))
        self.assertIn(self.pick(both, 'm'), ('a:1', 'b:1'))
        one.pools['m'] = both.pools['m']
        both.pools['m'].put('b:1', 'weight=1')
        both.pools['m'].put('a:1', 'weight=100')
        self.assertEqual({self.pick(one, 'm') for _ in range(6)}, {'b:1'})

    def test_litellm_deployments_that_come(self):
        """One thread has read the older list when another reads the newer."""
        old = [self.deployment('m', 'a:1')]
        new = [*old, self.deployment('m', 'b:1')]
        lists, read = iter((new, old, new)), threading.Event()

        class Registry:
            def deployments(self, model):
                found = next(lists)
                if found is old:
                    read.set()
                    time.sleep(.3)
                return found

        with mock.patch.object(self.router, 'registry', Registry):
            self.pick(self.strategy, 'm')
            older = threading.Thread(target=self.pick,
                                     args=(self.strategy, 'm'))
            older.start()
            read.wait()
            self.pick(self.strategy, 'm')
            older.join()
        with self.pool.call().request() as call:
            self.assertEqual(call.pick(allow=['b:1']), ['b:1'])

    def test_litellm_sync(self):
        for _ in range(2):
            r = self.router.completion(model='m', messages=bed.chat('sync'),
                                       max_tokens=4)
        self.assertGreater(r.usage.prompt_tokens_details.cached_tokens, 0)
        bed.until(lambda: bed.leases(self.pool) == 0)
