#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""module.py BUILD ENVOY SCRATCH TALLY - the dynamic module in the real Envoy.

Cases are those of kvroute-pick that fit, with the module in place of the
picker, and more. Each has three stand-in engines, and Envoy with
examples/envoy-module.yaml. $T names some cases.
"""
import concurrent.futures
import ctypes
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'pick'))

import bed
import envoy
from bed import wait_for, listens
from envoy import (all_ok, at_once, count, many_calls, no_calls_left, user,
    words)

EXAMPLE = 'examples/envoy-module.yaml'
PAGE = 'man/kvroute-envoy.7'
LISTENER = 'type.googleapis.com/envoy.config.listener.v3.Listener'
# The text of the filter's configuration.
SERVERS = re.compile(r'value: &servers \|\n((?: {18}.*\n)+)')


def listeners_of(text):
    """The listeners of a configuration, as a file of resources."""
    part = text[text.index('  listeners:\n'):text.index('  clusters:\n')]
    part = part.replace('  listeners:\n', 'resources:\n')
    return re.sub(r'^  - (name: .*\n)', r'  - "@type": %s\n    \1' % LISTENER,
        part, flags=re.M)


def displays_of(page):
    """The displays of a page, without their indentation."""
    with open(page) as file:
        text = file.read()
    return re.findall(r'^\.Bd -literal\n(.*?)^\.Ed$', text, re.M | re.S)


class StubEngine(threading.Thread):
    """Answers each connection with the same bytes, and closes it, or not."""
    def __init__(self, port, answer, hangs=False):
        super().__init__(daemon=True)
        self.answer, self.hangs, self.hanging = answer, hangs, []
        self.socket = socket.create_server(('127.0.0.1', port))
        self.start()

    def run(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            connection.recv(65536)
            connection.sendall(self.answer)
            self.hanging.append(connection)
            if not self.hangs:
                connection.close()

    def end(self):
        for each in [self.socket] + self.hanging:
            each.close()


class ModuleBed(bed.Bed):
    """inline: the configuration is that of the example, else of a file."""
    envoy_options = ('--drain-time-s', '1')

    def __init__(self, *args, inline=False, moved=False, **options):
        self.inline, self.moved = inline, moved
        super().__init__(*args, **options)

    def envoy_text(self):
        with open(EXAMPLE) as source:
            text = source.read()
        places = {8080: self.port, 9090: self.metrics}
        places.update(zip((8001, 8002, 8003), self.engines))
        for old, new in places.items():
            text = text.replace('port_value: %d ' % old,
                'port_value: %d ' % new).replace(
                '127.0.0.1:%d ' % old, '127.0.0.1:%d ' % new)
        if not self.inline:
            text = SERVERS.sub('value: &servers %s\n' %
                os.path.abspath(self.path('pick.conf')), text)
        return self.change(text)

    def write_envoy(self):
        text = self.envoy_text()
        if self.moved:
            self.write_listeners(text)
            text = 'node: { id: test, cluster: test }\n' \
                'dynamic_resources:\n  lds_config:\n' \
                '    path_config_source: { path: %s }\n' \
                'static_resources:\n%s' % (
                os.path.abspath(self.path('lds.yaml')),
                text[text.index('  clusters:\n'):])
        with open(self.path('envoy.yaml'), 'w') as out:
            out.write(text)

    def write_listeners(self, text):
        with open(self.path('lds.new'), 'w') as out:
            out.write(listeners_of(text))
        os.rename(self.path('lds.new'), self.path('lds.yaml'))

    def start_picker(self):
        os.environ['ENVOY_DYNAMIC_MODULES_SEARCH_PATH'] = self.build

    def start_envoy(self):
        super().start_envoy()
        wait_for(lambda: listens(self.metrics), what='the status')

    def status(self):
        return {'pool': self.get('/')}

    def upstream(self):
        return self.status()['pool']['upstreams'][0]

    def inflight(self):
        return self.upstream()['region']['leases'] + sum(
            w['requests'] for w in self.upstream()['workers'])

    def ends(self):
        return {name: self.upstream()[name] for name in ('clients_left',
            'broken', 'refused', 'retries')}

    def servers(self):
        return len(self.upstream()['workers'])

    def log(self):
        with open(self.path('envoy.log')) as file:
            return file.read()


class ModuleCases(envoy.Cases):
    Bed = ModuleBed

    def case_example(self):
        """the example as it is printed: chats stay, usage is not shown"""
        with open(EXAMPLE) as file:
            example = file.read()
        for display in displays_of(PAGE):
            lines = [l.strip() for l in display.splitlines()]
            assert '\n'.join(lines) in '\n'.join(
                l.strip() for l in example.splitlines()), display
        with self.bed(inline=True) as bed:
            chats = [[user('chat %d: %s' % (i, words(700, i)))]
                for i in range(3)]
            places = [set(), set(), set()]
            for turn in range(4):
                for i, messages in enumerate(chats):
                    answer = bed.chat(messages, stream=True)
                    all_ok([answer])
                    places[i].add(answer.server)
                    assert b'"usage":{' not in answer.body, answer.body
                    assert 'content-length' not in answer.headers
                    envoy.go_on(messages, answer, 'go on %d' % turn)
            no_calls_left(bed)
            assert bed.upstream()['usage']['value'] == 12, bed.upstream()['usage']
            metrics = urllib.request.urlopen('http://127.0.0.1:%d/metrics' %
                bed.metrics, timeout=10).read().decode()
            assert re.search(r'^kvroute_workers?\b|^kvroute_cells\b', metrics,
                re.M), metrics[:300]
            log = bed.log()
        assert 'deprecated' not in log and 'kvroute' not in log, log
        assert all(len(p) == 1 for p in places), places
        return ', '.join('chat %d at %s' % (i, min(p))
            for i, p in enumerate(places))

    def case_many_requests(self):
        """10,000 requests in two threads, in the same memory"""
        with self.bed(scale='0.0001',
                pool='size=4m workers=8 affinity=64') as bed:
            servers = many_calls(bed, streams=True)
            first = bed.memory('envoy')
            servers += many_calls(bed, streams=True)
            last = bed.memory('envoy')
            no_calls_left(bed)
            assert last - first < 1500, 'from %d to %d kB' % (first, last)
        return '%s; %d kB, then %d' % (count(servers), first, last)

    def case_beyond_the_buffer(self):
        """a body beyond Envoy's buffer is chosen for by its first part"""
        def change(text):
            return text.replace('per_connection_buffer_limit_bytes: 33554432',
                'per_connection_buffer_limit_bytes: 65536')

        with self.bed(change=change, scale='0.0001',
                engine=['--capacity', '4000000']) as bed:
            text = words(40000, 3)
            answers = [bed.chat([user(text), user('%d' % i)],
                stream=i % 2 == 1) for i in range(4)]
            all_ok(answers)
            no_calls_left(bed)
            cut = bed.upstream()['bodies_truncated']
            assert len({a.server for a in answers[1:]}) == 1, answers
        return '%d bytes; %s' % (len(text), count(a.server for a in answers))

    def case_all_engines_dead(self):
        """all engines dead: Envoy answers, and nothing of the calls is left"""
        with self.bed() as bed:
            all_ok([bed.chat([user(words(700, i))]) for i in range(6)])
            for engine in list(bed.engines):
                bed.kill_engine(engine)
            answers = at_once(6, lambda i: bed.chat([user(words(700, i))]))
            assert {a.status for a in answers} == {503}, answers
            no_calls_left(bed)
            ends = bed.ends()
            assert ends['refused'] > 0 and ends['clients_left'] == 0, ends
            for i in range(3):
                bed.start_engine(i)
            wait_for(lambda: bed.chat([user('x')]).status == 200)
        return '%s; %s' % (count(a.status for a in answers), ends)

    def case_full(self):
        """max_conns=1: the requests beyond three get 429 and Retry-After"""
        with self.bed(scale='1') as bed:
            conf = open(bed.path('pick.conf')).read()
            with open(bed.path('pick.conf'), 'w') as out:
                out.write(conf.replace('capacity=400000',
                    'capacity=400000 max_conns=1'))
            time.sleep(3)
            answers = at_once(9, lambda i: bed.chat([user('%d' % i)],
                max_tokens=60))
            no_calls_left(bed)
        statuses = [a.status for a in answers]
        assert sorted(set(statuses)) == [200, 429], statuses
        assert statuses.count(200) >= 3, statuses
        for a in answers:
            assert a.status == 200 or a.headers['retry-after'], a.headers
            assert a.status == 200 or b'"code":429' in a.body, a.body
        return count(statuses)

    def case_broken_within_streams(self):
        """streams that an engine breaks, and clients leave, are told apart"""
        with self.bed(scale='1') as bed:
            def one(i):
                try:
                    bed.chat([user('stream %d' % i)], stream=True,
                        max_tokens=100)
                except Exception as error:
                    return type(error).__name__
                return 'whole'

            with concurrent.futures.ThreadPoolExecutor(9) as pool:
                futures = [pool.submit(one, i) for i in range(9)]
                time.sleep(1)
                cut = [w['requests'] for w in bed.upstream()['workers']
                    if w['name'].endswith(':%d' % bed.engines[0])][0]
                bed.kill_engine(bed.engines[0])
                ends = [f.result() for f in futures]
            no_calls_left(bed)
            after = bed.ends()
        assert cut > 0 and after['broken'] == cut, (cut, after)
        assert after['clients_left'] == 0, after
        return '%s; %s' % (count(ends), after)

    def case_hanging_engine(self):
        """an engine that hangs is taken out, before and within a stream"""
        head = b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
        event = b'data: {"choices":[{"delta":{"content":"Yes"}}]}\n\n'

        def change(text):
            return text.replace(' timeout: 600s', ' timeout: 2s')

        said = []
        for answer in b'', head + event:
            with self.bed(change=change, conf='kvroute max_fails=1 '
                    'fail_timeout=60s;\n') as bed:
                bed.kill_engine(bed.engines[0])
                stub = StubEngine(bed.engines[0], answer, hangs=True)

                def ask(i):
                    try:
                        return str(bed.chat([user('%d %s' % (i,
                            words(300, i)))], stream=True).status)
                    except http.client.HTTPException:
                        return 'broken'

                firsts = at_once(12, ask)
                no_calls_left(bed)
                ends = bed.ends()
                assert ends['clients_left'] == 0, ends
                assert [ask(i) for i in range(12, 24)] == 12 * ['200']
                stub.end()
            want = 'broken' if answer else '504'
            assert set(firsts) == {'200', want}, firsts
            assert ends['broken'] == (firsts.count(want) if answer else 0), ends
            said.append(count(firsts))
        return '; '.join(said)

    def case_listeners_replaced(self):
        """listeners get other configurations under load; pools come and go"""
        with self.bed(inline=True, moved=True, scale='0.01') as bed:
            stop = time.monotonic() + 8
            text = bed.envoy_text()

            def work(t):
                answers = []
                while time.monotonic() < stop:
                    answers.append(bed.chat([user('%d %s' % (t,
                        words(50, t)))], stream=t % 2 == 0))
                return answers

            def threads():
                return len(os.listdir('/proc/%d/task' %
                    bed.processes['envoy'].pid))

            before = threads()
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                futures = [pool.submit(work, t) for t in range(4)]
                for i in range(3):
                    time.sleep(1.5)
                    bed.write_listeners(text.replace('affinity=65536',
                        'affinity=%d' % (1024 << i)))
                answers = sum([f.result() for f in futures], [])
            all_ok(answers)
            wait_for(lambda: bed.upstream()['region']['affinity_entries'] == 4096)
            wait_for(lambda: threads() == before, what='the end of pools')
            no_calls_left(bed)
            # A wrong one is refused, and the listeners stay.
            bed.write_listeners(text.replace('affinity=65536', 'afinity=1'))
            wait_for(lambda: 'filter_config:1: afinity=1' in bed.log())
            all_ok([bed.chat([user('x')])])
        return '%d answers; %s' % (len(answers),
            count(a.server for a in answers))

    def case_response_trailers(self):
        """trailers end a stream whose last line is not whole"""
        def change(text):
            return text.replace('          stat_prefix: llm\n',
                '          stat_prefix: llm\n'
                '          http_protocol_options: { enable_trailers: true }\n'
                ).replace('    connect_timeout: 1s\n', '''    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http_protocol_options: { enable_trailers: true } }
''')

        data = b'data: {"choices":[{"delta":{"content":"Yes"}}]}\n\ndata: {"us'
        with self.bed(change=change) as bed:
            for port in list(bed.engines):
                bed.kill_engine(port)
            stubs = [StubEngine(port, b'HTTP/1.1 200 OK\r\nconnection: close'
                b'\r\ncontent-type: text/event-stream\r\ntrailer: x-end\r\n'
                b'transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nx-end: 1'
                b'\r\n\r\n' % (len(data), data)) for port in bed.engines]
            s = socket.create_connection(('127.0.0.1', bed.port))
            body = b'{"stream":true,"messages":[{"role":"user","content":"a"}]}'
            s.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n'
                b'connection: close\r\ncontent-length: %d\r\n\r\n%s' % (
                len(body), body))
            got = b''
            while not got.endswith(b'x-end: 1\r\n\r\n'):
                piece = s.recv(65536)
                assert piece, got
                got += piece
            s.close()
            for stub in stubs:
                stub.end()
            no_calls_left(bed)
        body = re.sub(rb'\r\n[0-9a-f]+\r\n', b'', got.split(b'\r\n\r\n', 1)[1])
        assert b'data: {"us' in body, got
        return '%d bytes of %d' % (len(data), len(data))

    def case_subset_hint(self):
        """metadata names the servers that may be chosen: list, text, none"""
        hint = """          - name: envoy.filters.http.lua
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
              default_source_code:
                inline_string: |
                  function envoy_on_request(handle)
                    local value = handle:headers():get("x-subset")
                    if value == nil then return end
                    local names = {}
                    for name in value:gmatch("[^,]+") do
                      table.insert(names, name)
                    end
                    if handle:headers():get("x-listed") then value = names end
                    handle:streamInfo():dynamicMetadata():set(
                      "envoy.lb.subset_hint",
                      "x-gateway-destination-endpoint-subset", value)
                  end
"""
        def change(text):
            return text.replace('          http_filters:\n',
                '          http_filters:\n' + hint, 1)

        with self.bed(change=change) as bed:
            names = ['127.0.0.1:%d' % port for port in bed.engines]
            for i in range(18):
                subset = [names[i % 3], '10.9.9.9:1'] + \
                    [names[(i + 1) % 3]] * (i % 2)
                for headers in {}, {'x-listed': '1'}:
                    answer = bed.chat([user('%d %s' % (i, words(300, i)))],
                        headers={'x-subset': ','.join(subset), **headers})
                    all_ok([answer])
                    assert '127.0.0.1:' + answer.server in subset, (subset,
                        answer.server)
            refused = [bed.chat([user('x')], headers=headers).status
                for headers in ({'x-subset': '10.9.9.9:1', 'x-listed': '1'},
                {'x-subset': '10.9.9.9:1'}, {'x-subset': ''})]
            assert refused == [503] * 3, refused
            all_ok([bed.chat([user('x')])])
            no_calls_left(bed)
            assert 'subset' not in bed.log(), bed.log()
        return '36 requests within their subsets, 3 refused'

    def case_not_in_the_cluster(self):
        """a server that the cluster lacks is passed over"""
        with self.bed() as bed:
            with open(bed.path('pick.conf'), 'a') as out:
                out.write('server 127.0.0.1:9 weight=100;\n')
            wait_for(lambda: bed.servers() == 4)
            answers = [bed.chat([user('%d %s' % (i, words(300, i)))])
                for i in range(12)]
            all_ok(answers)
            no_calls_left(bed)
        return count(a.server for a in answers)

    def case_envoy_killed(self):
        """kill -9 of Envoy: a region in a file keeps caches, and no load"""
        with self.bed(scale='1', pool='size=64m') as bed:
            bed.write_conf('region %s;\n' % os.path.abspath(
                bed.path('region')))
            bed.stop('envoy', signal.SIGKILL)
            bed.start_envoy()
            chats = [[user(words(700, i))] for i in range(3)]
            firsts = [bed.chat(m, max_tokens=2) for m in chats]
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                futures = [pool.submit(bed.chat, [user('%d' % i)],
                    max_tokens=500) for i in range(4)]
                time.sleep(1)
                assert bed.inflight() > 0
                bed.stop('envoy', signal.SIGKILL)
                assert all(f.exception() for f in futures)
            bed.start_envoy()
            wait_for(lambda: bed.inflight() == 0, what='the end of leases')
            for messages, first in zip(chats, firsts):
                envoy.go_on(messages, first, 'and')
                again = bed.chat(messages, max_tokens=2)
                assert again.server == first.server, (first, again)
        return ', '.join('chat %d at %s' % (i, a.server)
            for i, a in enumerate(firsts))

    def case_file_errors(self):
        """a wrong line in the watched file is a sentence; servers stay"""
        with self.bed() as bed:
            with open(bed.path('pick.conf'), 'a') as out:
                out.write('server 127.0.0.1:9 capacity=much;\n')
            wait_for(lambda: 'pick.conf:6: server 127.0.0.1:9: ' in bed.log())
            assert bed.servers() == 3
            all_ok([bed.chat([user('x')])])
            lines = [l for l in bed.log().split('\n') if 'kvroute:' in l]
        return lines[0].split('] ')[-1].split('/')[-1]

    def case_config_errors(self):
        """errors of the configuration are sentences, and Envoy ends"""
        rows = (
            ('capacity=400000', 'capacity=much', r'filter_config:3: server '
                r'127.0.0.1:\d+: .+'),
            ('kvroute size=256m', 'kvroute sise=256m',
                'filter_config:1: sise=256m: .+'),
            ('server 127.0.0.1', 'server localhost', 'filter_config:3: '
                r'server localhost:\d+: a server is an address.+'),
            ('filter_name: kvroute\n', 'filter_name: kv\n',
                'filter_name is kvroute or kvroute_status, and not kv'))
        said = []
        for old, new, want in rows:
            bed = self.bed(inline=True, change=lambda t: t.replace(old, new))
            bed.start_picker()
            done = subprocess.run([self.envoy, '--mode', 'validate', '-c',
                bed.path('envoy.yaml'), '-l', 'warning'], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            found = re.search('kvroute: (%s)' % want, done.stdout)
            assert done.returncode != 0 and found, done.stdout
            said.append(found.group(1))
        return '; '.join(said[:2])

    def case_no_envoy(self):
        """a program without Envoy's functions does not load the module"""
        path = os.path.join(self.build, 'libkvroute_envoy.so')
        try:
            ctypes.CDLL(path)
        except OSError as error:
            assert 'undefined symbol: envoy_dynamic_module_callback' in \
                str(error), error
            return str(error).split(': ', 1)[1]
        raise AssertionError('it was loaded')


INHERITED = ['chats_stay', 'shared_prompt_spreads', 'engine_killed',
    'engine_killed_within_streams', 'clients_leave', 'large_bodies',
    'slow_engine_heals', 'servers_change',
    'prefill_elsewhere']

if __name__ == '__main__':
    sys.exit(envoy.run(ModuleCases, INHERITED + envoy.names_of(ModuleCases)))
