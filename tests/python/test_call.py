# SPDX-License-Identifier: BSD-2-Clause
"""Pools and calls, without engines."""
import contextlib
import gc
import json
import os
import queue
import signal
import tempfile
import threading
import time
import unittest

import bed
from kvroute import (Call, Failure, How, KvrouteError, Pool, Unavailable,
                     _library, _served)

SERVERS = ['10.0.0.1:8000', '10.0.0.2:8000']
ANSWER = json.dumps({
    'id': 'a', 'object': 'chat.completion', 'choices': [
        {'index': 0, 'message': {'role': 'assistant', 'content': 'yes'}}],
    'usage': {'prompt_tokens': 900, 'completion_tokens': 3, 'total_tokens': 903,
              'prompt_tokens_details': {'cached_tokens': 640}}}).encode()


def begin(pool, words='one', **more):
    return pool.call('/v1/chat/completions').request(
        bed.body(bed.chat(words), **more), {'content-type': 'application/json'})


def pool_if_known(servers, **options):
    """Skips a test of options that the library does not have yet."""
    try:
        return Pool(servers, **options)
    except KvrouteError as error:
        if error.code != _library.lib.KVH_ENAME:
            raise
        raise unittest.SkipTest(str(error))


def whole(call):
    call.response(200, 'application/json')
    call.data(ANSWER)
    return call.end()


class Calls(unittest.TestCase):
    def test_chat_stays_and_usage_comes_back(self):
        with Pool(SERVERS) as pool:
            servers = set()
            for _ in range(4):
                call = begin(pool)
                servers.add(call.pick()[0])
                whole(call)
            self.assertEqual(len(servers), 1)
            self.assertEqual(call.usage, (900, 640, 3))
            self.assertEqual((call.reason, call.endpoint, call.model),
                             ('cost', 'chat', 'm'))
            self.assertGreater(call.overlap_tokens, 0)
            self.assertGreaterEqual(call.best_tokens, call.overlap_tokens)
            self.assertGreater(call.prompt_tokens, call.overlap_tokens)
            self.assertEqual((call.tries, call.stream), (1, False))
            self.assertEqual(bed.leases(pool), 0)

    def test_other_servers_are_tried(self):
        pool = Pool(SERVERS)
        call = begin(pool)
        first = call.pick(fallbacks=True)
        self.assertEqual(sorted(first), SERVERS)
        call.failed(Failure.REFUSED)
        second = call.pick()
        self.assertEqual(second, [s for s in SERVERS if s != first[0]])
        call.failed(Failure.STATUS, 503)
        with self.assertRaises(Unavailable) as caught:
            call.pick()
        self.assertEqual(caught.exception.status, 503)
        self.assertGreaterEqual(caught.exception.retry_after, 1)
        self.assertFalse(call.response(503))
        self.assertEqual(call.data(b'x'), b'x')
        call.end()
        self.assertEqual(bed.leases(pool), 0)

    def test_other_servers_are_tried_by_the_program(self):
        pool = Pool(SERVERS)
        call = begin(pool)
        first, second = call.pick(fallbacks=True)
        call.response(200, 'application/json', served=second)
        call.data(ANSWER)
        call.end()
        call = begin(pool)
        self.assertEqual(call.pick(), [second])
        self.assertEqual(bed.leases(pool), 1)

    def test_response_of_a_server_that_failed_is_over(self):
        pool = Pool(SERVERS)
        for again in (False, True):
            call = begin(pool, f'again {again}')
            call.pick()
            call.response(503, 'application/json')
            call.failed(Failure.STATUS, 503)
            if again:
                call.pick()
            self.assertEqual(call.data(b'x'), b'x')
            self.assertEqual(call.end(), b'')
        self.assertEqual(bed.leases(pool), 0)

    def test_reports_of_servers_that_the_program_tried(self):
        for failure in Failure:
            pool = Pool(SERVERS, fallbacks=1)
            call = begin(pool)
            servers = call.pick(fallbacks=True)
            call.target_failed(0, failure, 503)
            with self.assertRaises(KvrouteError):
                call.target_failed(2)
            call.response(200, 'application/json', served=servers[1])
            call.end()
            asked = {begin(pool, f'w{i}').pick()[0] for i in range(9)}
            self.assertEqual(servers[0] in asked,
                             failure == Failure.NOT_SENT, failure)

    def test_explained_before_it_is_picked(self):
        pool = Pool(SERVERS)
        call = begin(pool)
        self.assertEqual(call.explain()['outcome'], 'prompt')
        self.assertEqual(len(call.explain()['candidates']), 2)
        call.pick()
        with self.assertRaises(KvrouteError):
            call.explain()

    def test_full_servers_have_429(self):
        pool = Pool({s: 'max_conns=1' for s in SERVERS})
        held = [begin(pool, str(i)) for i in range(2)]
        self.assertEqual({c.pick()[0] for c in held}, set(SERVERS))
        with self.assertRaises(Unavailable) as caught:
            begin(pool).pick()
        self.assertEqual(caught.exception.status, 429)

    def test_only_allowed_servers_are_picked(self):
        pool = Pool(SERVERS)
        for server in SERVERS:
            self.assertEqual(begin(pool).pick([server], fallbacks=True),
                             [server])
        with self.assertRaises(Unavailable):
            begin(pool).pick(allow=['10.0.0.3:8000'])
        with self.assertRaises(Unavailable):
            begin(pool).pick(allow=[])

    def test_another_server_prefills(self):
        decodes, prefills = SERVERS
        pool = Pool({decodes: 'role=decode', prefills: 'role=prefill'})
        call = begin(pool, 'a long text ' * 200)
        self.assertEqual(call.pick(fallbacks=True), [decodes])
        self.assertEqual(call.prefill(), prefills)
        self.assertEqual(call.edited_headers()['x-prefiller-host-port'],
                         prefills)
        pool = Pool({decodes: 'role=decode', prefills: 'role=prefill'},
                    split=10**6)
        call = begin(pool, 'a long text ' * 200)
        self.assertEqual(call.pick(), [decodes])
        self.assertIsNone(call.prefill())
        self.assertNotIn('x-prefiller-host-port', call.edited_headers(
            {'X-Prefiller-Host-Port': '10.0.0.9:1'}))

    def test_servers_come_and_go(self):
        pool = Pool()
        with self.assertRaises(Unavailable):
            begin(pool).pick()
        pool.put(SERVERS[0], 'capacity=1000 weight=2')
        pool.put(SERVERS[1])
        pool.put(SERVERS[1], 'state=drain')
        self.assertEqual(begin(pool).pick()[0], SERVERS[0])
        pool.put(SERVERS[1])
        pool.remove(SERVERS[0])
        self.assertEqual(begin(pool).pick(), [SERVERS[1]])
        pool.reset(SERVERS[1])

    def test_server_that_fails_keeps_no_others_out(self):
        pool, bad = Pool(), 'x' * 5000
        with self.assertLogs('kvroute') as logged:
            known = _served.update(pool, set(), [SERVERS[0], bad, 'z:1'])
        self.assertEqual(known, {SERVERS[0], 'z:1'})
        self.assertIn(bad, logged.output[0])
        known = _served.update(pool, known, SERVERS[1:])
        self.assertEqual(known, {SERVERS[1]})
        self.assertEqual(begin(pool).pick(fallbacks=True), SERVERS[1:])

    def test_errors_name_the_option(self):
        for options, word in (({'foo': 1}, 'foo=1'), ({'gray': 'x'}, 'gray=x')):
            with self.assertRaises(KvrouteError) as caught:
                Pool(**options)
            self.assertIn(word, str(caught.exception))
        with self.assertRaises(ValueError):
            Pool(affinity='two words')
        with self.assertRaises(KvrouteError) as caught:
            Pool({'a:1': 'capacity=5 bar=2'})
        self.assertIn('a:1 bar=2', str(caught.exception))
        with self.assertRaises(KvrouteError) as caught:
            Pool(region='/nonexistent/region')
        self.assertIn('/nonexistent/region', str(caught.exception))

    def test_sessions_stay(self):
        pool = Pool(SERVERS, affinity='x-chat')
        for name in ('a', 'b', 'c'):
            picked = set()
            for words in ('one', 'two', 'three'):
                call = pool.call('/v1/chat/completions').request(
                    bed.body(bed.chat(words + name)), [(b'X-Chat',
                                                       name.encode())])
                picked.add(call.pick()[0])
                whole(call)
            self.assertEqual(len(picked), 1)
        told = set()
        for words in ('four', 'five', 'six'):
            call = pool.call('/v1/chat/completions').tell(
                session='d').request(bed.body(bed.chat(words)))
            told.add(call.pick()[0])
            whole(call)
        self.assertEqual(len(told), 1)

    def test_tenants_share_nothing(self):
        pool = Pool(SERVERS)
        for tenant, overlap in (('a', False), ('a', True), ('b', False)):
            call = pool.call('/v1/chat/completions').tell(
                tenant=tenant, model='n').request(bed.body(bed.chat('x')))
            call.pick()
            self.assertEqual(call.overlap_tokens > 0, overlap)
            self.assertEqual(call.model, 'n')
            whole(call)

    def test_edits_request_usage_and_hide_it(self):
        pool = Pool(SERVERS, include_usage=True)
        call = begin(pool, stream=True)
        call.pick()
        self.assertTrue(json.loads(call.edited())['stream_options']
                        ['include_usage'])
        self.assertEqual(call.edited_headers(
            {'Accept-Encoding': 'gzip', 'A': 'b'}),
            {'accept-encoding': 'identity', 'a': 'b'})
        self.assertTrue(call.response(200, 'text/event-stream'))
        head = (b'data: {"id":"a","object":"chat.completion.chunk","choices":'
                b'[{"index":0,"delta":{"role":"assistant","content":"yes"}}],'
                b'"usage":null}\n\n')
        usage = (b'data: {"id":"a","object":"chat.completion.chunk","choices":'
                 b'[],"usage":{"prompt_tokens":900,"completion_tokens":3,'
                 b'"total_tokens":903}}\n\n')
        out = b''.join(call.data(bytes([b])) for b in
                       head + usage + b'data: [DONE]\n\n') + call.end()
        self.assertNotIn(b'"usage":{', out)
        self.assertIn(b'"content":"yes"', out)
        self.assertTrue(out.endswith(b'data: [DONE]\n\n'))
        self.assertEqual(call.usage[0], 900)
        self.assertTrue(call.started)

    def test_ranks_are_asked_for(self):
        pool = Pool({SERVERS[0]: 'ranks=2'})
        ranks = set()
        for i in range(2):
            call = begin(pool, f'rank{i}')
            call.pick()
            ranks.add(call.rank())
            self.assertEqual(call.edited_headers([(b'X-Data-Parallel-Rank',
                                                   b'7')])
                             ['x-data-parallel-rank'], str(call.rank()))
            whole(call)
        self.assertLessEqual(ranks, {0, 1})

    def test_body_in_pieces_and_tokens(self):
        pool = Pool(SERVERS)
        text = bed.body(bed.chat('pieces'))
        call = pool.call('/v1/chat/completions').headers({'a': 'b'})
        for i in range(0, len(text), 7):
            call.body(bytearray(text[i:i + 7]))
        call.body_end().pick()
        self.assertGreater(call.prompt_tokens, 0)
        self.assertEqual(call.edited(text), text)
        tokens = list(range(1000))
        call = pool.call('/v1/completions').tokens(tokens)
        call.pick()
        self.assertGreater(call.prompt_tokens, 0)

    def test_edits_of_a_body_in_pieces_need_it(self):
        pool = Pool(SERVERS, include_usage=True)
        text = bed.body(bed.chat('pieces'), stream=True)
        whole = begin(pool, 'pieces', stream=True)
        whole.pick()
        pieces = pool.call('/v1/chat/completions').body(text[:9]).body(
            text[9:]).body_end()
        mixed = pool.call('/v1/chat/completions').body(text[:9]).request(
            text[9:])
        tokens = pool.call('/v1/completions').tokens(list(range(1000)))
        for call in (pieces, mixed, tokens):
            call.pick()
            with self.assertRaises(KvrouteError) as caught:
                call.edited()
            self.assertEqual(caught.exception.code, _library.lib.KVH_EORDER)
        for call in (pieces, mixed):
            self.assertEqual(call.edited(text), whole.edited())
            self.assertIn('include_usage', call.edited(text).decode())

    def test_sizes_are_in_bytes(self):
        pool = Pool(SERVERS, include_usage=True)
        text = bed.body(bed.chat('wide'), stream=True)
        text += b' ' * (-len(text) % 4)
        sent = []
        for body in (text, bytearray(text), memoryview(text).cast('I')):
            call = pool.call('/v1/chat/completions').request(body)
            call.pick()
            sent.append((call.prompt_tokens, call.edited()))
            answer = ANSWER + b' ' * (-len(ANSWER) % 4)
            call.response(200, 'application/json')
            call.data(memoryview(answer).cast('I'))
            call.end()
            self.assertEqual(call.usage.prompt, 900)
        self.assertEqual(sent, sent[:1] * 3)

    def test_objects_that_are_not_made(self):
        for kind in (Pool, Call):
            with self.assertRaises(TypeError):
                kind(1, 2, 3, 4, 5)

    def test_strange_requests_are_routed(self):
        pool = Pool(SERVERS)
        for path, text in (('/v1/models', b''), ('/', b'\xff\x00'),
                           ('/v1/chat/completions', b'{"messages":'),
                           ('/v1/chat/completions', b''),
                           ('/\udcff', b'[]')):
            with pool.call(path).request(text, {'x': '\udc80'}) as call:
                self.assertIn(call.pick()[0], SERVERS)
                call.response(200)
                call.data(b'')


class Lives(unittest.TestCase):
    def test_forgotten_calls_are_given_up(self):
        pool = Pool(SERVERS)
        call = begin(pool)
        call.pick()
        self.assertEqual(bed.leases(pool), 1)
        del call
        self.assertEqual(bed.leases(pool), 0)
        circle = [begin(pool)]
        circle[0].pick()
        circle.append(circle)
        del circle
        gc.collect()
        self.assertEqual(bed.leases(pool), 0)

    def test_block_ends_the_call(self):
        pool = Pool(SERVERS)
        with begin(pool) as call:
            call.pick()
        self.assertTrue(call.ended)
        for answered in (False, True):
            with self.assertRaises(ZeroDivisionError), begin(pool) as call:
                call.pick()
                if answered:
                    call.response(200, 'text/event-stream')
                1 / 0
        self.assertEqual(bed.leases(pool), 0)
        self.assertEqual(call.end(), b'')
        with self.assertRaises(KvrouteError):
            call.data(b'x')

    def test_every_end(self):
        pool = Pool(SERVERS)
        for how in How:
            call = begin(pool, how.name)
            call.pick()
            call.response(200, 'application/json')
            call.end(how)
            call.end()

    def test_steps_in_a_wrong_order(self):
        pool = Pool(SERVERS)
        call = pool.call('/v1/chat/completions')
        for step in (call.pick, call.failed, call.wait):
            with self.assertRaises(KvrouteError):
                step()

    def test_pool_is_closed_after_its_calls(self):
        pool = Pool(SERVERS)
        call = begin(pool)
        call.pick()
        pool.close()
        with self.assertRaises(KvrouteError):
            begin(pool)
        whole(call)
        self.assertEqual(call.usage.prompt, 900)
        del call, pool
        gc.collect()
        # A circle of both, in which either may be collected first.
        pool = Pool(SERVERS)
        holder = [begin(pool)]
        holder[0].pick()
        pool.holder = holder
        del pool, holder
        gc.collect()

    def test_region_is_shared_and_kept(self):
        with tempfile.TemporaryDirectory(dir=bed.scratch) as folder:
            path = os.path.join(folder, 'region')
            pools = [Pool(SERVERS, region=path) for _ in range(2)]
            call = begin(pools[0])
            first = call.pick()[0]
            whole(call)
            call = begin(pools[1])
            self.assertEqual(call.pick()[0], first)
            self.assertGreater(call.overlap_tokens, 0)

    def in_child(self, work):
        """Runs it in a child; its result is that of the child."""
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(20)
                os._exit(work())
            finally:
                os._exit(99)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def refused(self, *steps):
        """The number of those that are not refused in a child."""
        for number, step in enumerate(steps, 1):
            try:
                step()
                return number
            except KvrouteError as error:
                if 'parent' not in str(error):
                    return number
        return 0

    def test_fork(self):
        pool = Pool(SERVERS)
        call, ready = begin(pool), begin(pool, 'ready')
        call.pick()
        call.response(200, 'application/json')
        left = pool.call('/v1/chat/completions')
        self.in_child(lambda: self.refused(
            pool.call, pool.tick, pool.status, pool.turns, pool.poll,
            lambda: pool.put(SERVERS[0]), lambda: pool.reset(SERVERS[0]),
            lambda: left.tell(tenant='x'), lambda: left.headers({'a': 'b'}),
            left.request, lambda: left.tokens([1]), ready.pick, ready.wait,
            call.failed, call.edited, call.edited_headers, call.rank,
            lambda: call.response(200), lambda: left.response(200),
            lambda: call.data(b'x'), lambda: left.data(b'x'), call.end,
            left.end, lambda: call.reason, lambda: call.usage,
            lambda: call.trace, lambda: call.started))
        call.data(ANSWER)
        call.end()
        self.assertEqual(call.usage.prompt, 900)
        self.assertEqual(bed.leases(pool), 0)

    def test_child_leaves_the_pool_of_its_parent(self):
        pool = Pool(SERVERS)
        call = begin(pool)
        call.pick()

        def child():
            nonlocal pool, call
            with contextlib.suppress(ZeroDivisionError), pool, call:
                1 / 0
            with pool, call:
                pass
            pool.close()
            if pool._h is None or call.ended:
                return 1
            own = begin(Pool(SERVERS))
            own.pick()
            del call, pool
            gc.collect()
            return 0

        # A child has the locks as they were.
        with pool._lock:
            self.in_threads(lambda ended: self.in_child(child))
        whole(call)
        self.assertEqual(bed.leases(pool), 0)

    def test_threads(self):
        pool = Pool(SERVERS)
        errors = []

        def work(number):
            try:
                for i in range(300):
                    call = begin(pool, f'{number % 4}')
                    call.pick()
                    if i % 3 == 0:
                        call.failed()
                        call.pick()
                    if i % 5:
                        whole(call)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(bed.leases(pool), 0)

    def in_threads(self, *works):
        """Runs each in a thread of its own, until the first one has ended."""
        errors, ended = [], threading.Event()

        def run(work):
            try:
                work(ended)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(w,)) for w in works]
        for thread in threads:
            thread.start()
        threads[0].join()
        ended.set()
        for thread in threads[1:]:
            thread.join()
        self.assertEqual(errors, [])

    def test_calls_end_in_another_thread(self):
        pool, calls = Pool(SERVERS), queue.Queue(8)

        def begin_some(ended):
            for _ in range(20000):
                calls.put(pool.call())
            calls.put(None)

        def drop_them(ended):
            while calls.get() is not None:
                pass

        def begin_others(ended):
            while not ended.is_set():
                pool.call()

        self.in_threads(begin_some, drop_them, begin_others, begin_others)
        self.assertEqual(len(pool._open), 0)
        pool.close()
        self.assertIsNone(pool._h)

    def test_close_while_others_use_the_pool(self):
        pools = [Pool(SERVERS) for _ in range(60)]

        def use_them(ended):
            for pool in pools:
                with contextlib.suppress(KvrouteError):
                    while True:
                        pool.tick()
                        pool.metrics()
                        pool.call()

        def close_them(ended):
            for pool in pools:
                time.sleep(.005)
                pool.close()

        self.in_threads(close_them, use_them, use_them, use_them)
        self.assertEqual({pool._h for pool in pools}, {None})

    def test_waiting_calls_get_their_turn(self):
        pool = pool_if_known({SERVERS[0]: 'max_conns=1'}, queue=10,
                             queue_timeout='10s')
        first = begin(pool)
        first.pick()
        second = begin(pool)
        with self.assertRaises(Unavailable):
            second.pick()
        second.wait()
        self.assertEqual(pool.turns(), [])
        whole(first)
        self.assertEqual(pool.turns(), [second])
        self.assertEqual(second.pick(), SERVERS[:1])
        self.assertIsInstance(second, Call)

    def test_calls_that_cannot_wait(self):
        with self.assertRaises(Unavailable) as full:
            call = begin(Pool([SERVERS[0]], queue=1))
            call.pick(allow=())
        self.assertEqual(full.exception.status, 503)
        with self.assertRaises(Unavailable) as full:
            call.wait()
        self.assertEqual(full.exception.status, 503)
        pool = Pool({SERVERS[0]: 'max_conns=1'})
        first, second = begin(pool), begin(pool)
        first.pick()
        for step in second.pick, second.wait:
            with self.assertRaises(Unavailable) as full:
                step()
            self.assertEqual(full.exception.status, 429)

    def test_polls(self):
        self.assertIsNone(Pool(SERVERS).poll())
        pool = pool_if_known({SERVERS[0]: 'capacity=auto'}, poll='1s')
        poll = pool.poll()
        self.assertEqual(poll.server, SERVERS[0])
        self.assertTrue(poll.path.startswith('/'))
        pool.polled(poll, 200, b'vllm:num_requests_running 1\n')
        self.assertFalse(pool.polled(poll, 200, b''))
        while (poll := pool.poll()) is not None:
            self.assertTrue(pool.polled(poll, 0))
        self.assertLessEqual(pool.tick(), 60)

    def test_lines_of_the_trace(self):
        pool = Pool(SERVERS, trace=True)
        call = begin(pool)
        call.pick()
        whole(call)
        self.assertIsInstance(json.loads(call.trace), dict)
        self.assertIsNone(begin(Pool(SERVERS)).trace)

    def test_status_is_read(self):
        pool = Pool(SERVERS)
        begin(pool).pick()
        self.assertIsInstance(pool.status(), dict)
        self.assertIn('kvroute_leases', pool.metrics())
        self.assertGreaterEqual(pool.tick(), 0)
