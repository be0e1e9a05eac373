# SPDX-License-Identifier: BSD-2-Clause
"""README's example, and the gateway, before engines."""
import asyncio
import gzip
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading

import bed
import httpx

TURNS = [None, {'stream': True}, {'stream': True, 'tools': []}, None]


class Example(bed.EngineTest):
    def example(self):
        """The lines of README, as a function of a program."""
        text = pathlib.Path(bed.root, 'bindings/python/README.md').read_text()
        code = re.search(r'```python\n(.*?)```', text, re.S)[1]
        for line, engine in zip(('10.0.0.1:8000', '10.0.0.2:8000'),
                                self.engines):
            self.assertIn(line, code)
            code = code.replace(line, engine.name)
        code = code.replace('/run/kvroute', os.path.join(bed.scratch, 'region'))
        head, pool, rest = code.split('\n', 2)
        space = {}
        exec(f'from aiohttp.web import Response\n{head}\n{pool}\n'
             f'async def run(client, body, headers):\n'
             f'{textwrap.indent(rest, "    ")}\n'
             f'    return r, call\n', space)
        return space['pool'], space['run']

    def setUp(self):
        super().setUp()
        for name in ('region', 'region.lock'):
            pathlib.Path(bed.scratch, name).unlink(missing_ok=True)

    def test_example_works_as_printed(self):
        pool, run = self.example()

        async def chats():
            messages = bed.chat('example')
            async with httpx.AsyncClient() as client:
                for more in TURNS:
                    r, call = await run(client, bed.body(
                        messages, max_tokens=8, **(more or {})), {})
                    self.assertEqual(r.status_code, 200)
                    messages += [{'role': 'assistant', 'content': 'yes'},
                                 {'role': 'user', 'content': 'go on'}]
            self.assertGreater(call.overlap_tokens, 0)
            self.assertGreater(call.usage.cached, 0)

        asyncio.run(chats())
        self.assertEqual(bed.leases(pool), 0)

    def test_example_with_engines_that_fail(self):
        pool, run = self.example()
        for engine in self.engines:
            engine.fault('kind=error&seconds=60&status=503')

        async def ask():
            async with httpx.AsyncClient() as client:
                return await run(client, bed.body(bed.chat('fail')), {})

        r, call = asyncio.run(ask())
        self.assertEqual((r.status_code, call.tries), (503, 2))
        self.engines[0].fault('kind=none')
        self.assertEqual(asyncio.run(ask())[0].status_code, 200)
        self.assertEqual(bed.leases(pool), 0)
        for engine in self.engines:
            pool.put(engine.name, 'state=down')
        self.assertEqual(asyncio.run(ask()).status, 503)


class GatewayTest(bed.EngineTest):
    def begin(self, names):
        self.port = bed.free_port()
        log = open(os.path.join(bed.scratch, 'gateway.log'), 'w')
        self.addCleanup(log.close)
        self.gateway = subprocess.Popen(
            [sys.executable, os.path.join(bed.root, 'examples/gateway.py'),
             str(self.port), *names], stdout=log, stderr=log)
        self.addCleanup(self.gateway.wait)
        self.addCleanup(self.gateway.kill)
        bed.until(lambda: bed.listens(self.port))
        self.client = httpx.Client(base_url=f'http://127.0.0.1:{self.port}',
                                   timeout=30)
        self.addCleanup(self.client.close)


class Polls(GatewayTest):
    engines_n = 0

    def test_gateway_asks_engines(self):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_error(404)

            def log_message(self, *args):
                pass

        server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()
        self.begin([f'127.0.0.1:{server.server_port},capacity=auto'])
        bed.until(lambda: len(set(asked)) > 1 and '/metrics' in asked)


class Queue(GatewayTest):
    engines_n = 1

    def test_gateway_has_requests_wait(self):
        self.begin([f'{self.engines[0].name},max_conns=1'])
        answers = []

        def ask(i):
            r = httpx.post(f'{self.client.base_url}/v1/chat/completions',
                           content=bed.body(bed.chat(f'wait{i}'),
                                            max_tokens=64), timeout=60)
            answers.append(r.status_code)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [200] * 6)


class Headers(GatewayTest):
    engines_n = 0

    def test_gateway_passes_headers(self):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append((self.headers, self.rfile.read(
                    int(self.headers['content-length']))))
                self.send_response(200)
                self.send_header('set-cookie', 'a=1, b')
                self.send_header('set-cookie', 'c=2')
                self.send_header('content-encoding', 'gzip')
                self.end_headers()
                self.wfile.write(gzip.compress(b'{"answer": 1}'))

            def log_message(self, *args):
                pass

        server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()
        self.begin([f'127.0.0.1:{server.server_port}'])
        text = bed.body(bed.chat('deflated'))
        headers = [('content-type', 'application/json'), ('x-a', '1'),
                   ('x-a', '2'), ('cookie', 'a=1'), ('cookie', 'b=2')]
        for coding, body in ('gzip', gzip.compress(text)), ('x', b'other'):
            r = self.client.post('/v1/chat/completions', content=body, headers=[
                *headers, ('content-encoding', coding)])
            self.assertEqual((r.status_code, r.json()), (200, {'answer': 1}))
            self.assertEqual(r.headers.get_list('set-cookie'),
                             ['a=1, b', 'c=2'])
        (first, sent), (second, other) = asked
        self.assertEqual(sent, text)
        self.assertNotIn('content-encoding', first)
        self.assertEqual((second['content-encoding'], other), ('x', b'other'))
        self.assertEqual((first['x-a'], first['cookie']), ('1, 2', 'a=1; b=2'))


class Gateway(GatewayTest):
    def setUp(self):
        super().setUp()
        self.begin(self.names())

    def ask(self, messages, **more):
        return self.client.post('/v1/chat/completions', content=bed.body(
            messages, max_tokens=8, **more),
            headers={'content-type': 'application/json'})

    def test_gateway_keeps_chats(self):
        for number in range(4):
            messages = bed.chat(f'chat{number}')
            for turn in range(3):
                r = self.ask(messages)
                self.assertEqual(r.status_code, 200)
                cached = r.json()['usage']['prompt_tokens_details'][
                    'cached_tokens']
                self.assertEqual(cached > 0, turn > 0)
                messages += [r.json()['choices'][0]['message'],
                             {'role': 'user', 'content': 'go on'}]

    def test_gateway_passes_streams(self):
        messages = bed.chat('stream')
        r = self.ask(messages, stream=True)
        events = [line[6:] for line in r.text.splitlines()
                  if line.startswith('data: ')]
        self.assertEqual(events[-1], '[DONE]')
        chunks = [json.loads(event) for event in events[:-1]]
        self.assertFalse(any(chunk.get('usage') for chunk in chunks))
        r = self.ask(messages, stream=True,
                     stream_options={'include_usage': True})
        self.assertIn('"usage":{', r.text.replace(' ', ''))

    def test_gateway_avoids_an_engine_that_is_killed(self):
        messages = [bed.chat(f'kill{i}') for i in range(4)]
        for m in messages:
            self.assertEqual(self.ask(m).status_code, 200)
        self.engines[0].kill()
        for m in messages * 2:
            self.assertEqual(self.ask(m).status_code, 200)
        self.engines[1].kill()
        self.assertIn(self.ask(messages[0]).status_code, (502, 503))

    def test_gateway_ends_streams_of_clients_that_leave(self):
        with self.client.stream('POST', '/v1/chat/completions', content=bed.body(
                bed.chat('leave'), stream=True, max_tokens=60000)) as r:
            next(r.iter_raw())
        bed.until(lambda: all('vllm:num_requests_running{' not in line or
                              line.endswith((' 0', ' 0.0'))
                              for e in self.engines
                              for line in httpx.get(f'http://{e.name}/metrics')
                              .text.splitlines()))

    def test_gateway_cuts_streams_that_break(self):
        results = []

        def read():
            try:
                with self.client.stream(
                        'POST', '/v1/chat/completions', content=bed.body(
                            bed.chat('break'), stream=True,
                            max_tokens=60000)) as r:
                    for piece in r.iter_raw():
                        results.append(piece)
            except httpx.RemoteProtocolError as error:
                results.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        bed.until(lambda: results)
        for engine in self.engines:
            engine.fault('kind=die')
        thread.join()
        self.assertIsInstance(results[-1], httpx.RemoteProtocolError)
        self.assertEqual(self.ask(bed.chat('break')).status_code, 200)
