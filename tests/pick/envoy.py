#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""envoy.py BUILD ENVOY SCRATCH TALLY - kvroute-pick behind the real Envoy.

Each case has three stand-in engines, kvroute-pick and Envoy with
examples/envoy.yaml, and prints a line of what went where. $T names some cases.
"""
import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import socket
import sys
import time

from bed import Bed, wait_for

WORDS = 700


def words(n, seed):
    r = random.Random(seed)
    return ' '.join('w%d' % r.randrange(99999) for _ in range(n))


def user(text):
    return {'role': 'user', 'content': text}


def go_on(messages, answer, text):
    messages += [{'role': 'assistant', 'content': answer.text}, user(text)]


def at_once(n, work, threads=None):
    with concurrent.futures.ThreadPoolExecutor(threads or n) as pool:
        return list(pool.map(work, range(n)))


def count(values):
    return ', '.join('%s: %d' % pair for pair in
        sorted(collections.Counter(values).items()))


def open_chat(bed, i):
    """A connection with a request whose answer takes long."""
    connection = bed.connect()
    connection.request('POST', '/v1/chat/completions', json.dumps({
        'model': 'm', 'messages': [user('%d' % i)], 'max_tokens': 20000,
        'stream': True}), {'content-type': 'application/json'})
    return connection


def all_ok(answers):
    bad = [a for a in answers if a.status != 200]
    assert not bad, '%d of %d failed: %d %r' % (len(bad), len(answers),
        bad[0].status, bad[0].body[:200])


def many_calls(bed, streams=False):
    """5,000 calls over eight connections; returns their servers."""
    def work(t):
        c = bed.connect()
        servers = []
        for i in range(625):
            a = bed.chat([user('%d %d' % (t, i))], connection=c,
                max_tokens=1, stream=streams and i % 2 == 0)
            all_ok([a])
            servers.append(a.server)
        c.close()
        return servers

    return sum(at_once(8, work), [])


def no_calls_left(bed):
    wait_for(lambda: bed.inflight() == 0, what='the end of all calls')
    for upstream in bed.status()['pool']['upstreams']:
        assert upstream['workers'], upstream
        for server in upstream['workers']:
            assert server['requests'] == 0, server


class Cases:
    Bed = Bed

    def __init__(self, build, envoy, scratch):
        self.build, self.envoy, self.scratch = build, envoy, scratch
        self.name = ''

    def bed(self, **options):
        folder = os.path.join(self.scratch, self.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        return self.Bed(self.build, self.envoy, folder, **options)

    # ---------------------------------------------------------------- cases

    def case_chats_stay(self):
        """turns of a chat go to the server that has its prefix"""
        chats = [[user('chat %d: %s' % (i, words(WORDS, i)))]
            for i in range(4)]
        places = collections.defaultdict(list)
        with self.bed() as bed:
            for turn in range(5):
                for i, messages in enumerate(chats):
                    answer = bed.chat(messages, stream=turn % 2 == 1)
                    all_ok([answer])
                    places[i].append(answer.server)
                    if turn % 2 == 1:
                        assert b'"usage"' not in answer.body or \
                            b'"usage":null' in answer.body, 'usage leaked'
                    elif turn > 0:
                        assert answer.cached > 1000, answer.usage
                    go_on(messages, answer, 'go on %d' % turn)
            no_calls_left(bed)
        for i, servers in places.items():
            assert len(set(servers)) == 1, (i, servers)
        return ', '.join('chat %d at %s' % (i, s[0])
            for i, s in places.items())

    def case_tls(self):
        """the same over TLS, with the certificate that is made at the start"""
        with self.bed(tls=True) as bed:
            answers = at_once(12, lambda i: bed.chat([user('%d' % i)]))
            all_ok(answers)
            no_calls_left(bed)
        return count(a.server for a in answers)

    def case_prefill_elsewhere(self):
        """a decode engine is named the one that prefills"""
        with self.bed(roles=('decode', 'decode', 'prefill')) as bed, \
                bed.echoing(bed.engines[:2]):
            prefill = '127.0.0.1:%d' % bed.engines[2]
            longs = at_once(6, lambda i: bed.chat([user(words(WORDS, i))]))
            shorts = at_once(6, lambda i: bed.chat([user('%d' % i)],
                headers={'X-Prefiller-Host-Port': '10.9.9.9:1'}))
            all_ok(longs + shorts)
            assert {a.text for a in longs} == {prefill}, longs[0].body
            assert {a.text for a in shorts} == {''}, shorts[0].body
            no_calls_left(bed)
            bed.roles = ('decode', 'decode')
            bed.engines = bed.engines[:2]
            bed.write_conf()
            wait_for(lambda: bed.servers() == 2)
            alone = bed.chat([user(words(WORDS, 99))])
            all_ok([alone])
            assert alone.text == '', alone.body
        return '%d long ones by %s, %d short ones and one without it' % (
            len(longs), prefill, len(shorts))

    def case_shared_prompt_spreads(self):
        """many chats with one system prompt use all servers"""
        system = {'role': 'system', 'content': words(900, 1)}
        with self.bed(scale='0.2') as bed:
            answers = at_once(24, lambda i: bed.chat([system,
                user('question %d' % i)], stream=True, max_tokens=64))
            all_ok(answers)
            no_calls_left(bed)
        assert len({a.server for a in answers}) == 3
        return count(a.server for a in answers)

    def case_engine_killed(self):
        """kill -9 of an engine: no request fails that has not begun"""
        with self.bed() as bed:
            chats = [[user('chat %d: %s' % (i, words(WORDS, i)))]
                for i in range(6)]
            firsts = [bed.chat(m) for m in chats]
            all_ok(firsts)
            bed.kill_engine(firsts[0].server)
            answers = []
            for turn in range(3):
                for messages, first in zip(chats, firsts):
                    if turn == 0:
                        go_on(messages, first, 'and')
                    answers.append(bed.chat(messages))
            all_ok(answers)
            assert firsts[0].server not in {a.server for a in answers}
            no_calls_left(bed)
        return 'before %s; after %s' % (count(a.server for a in firsts),
            count(a.server for a in answers))

    def case_engine_killed_within_streams(self):
        """kill -9 within streams: only streams of that engine are cut"""
        with self.bed(scale='1') as bed:
            def one(i):
                try:
                    a = bed.chat([user('stream %d %s' % (i, words(50, i)))],
                        stream=True, max_tokens=100)
                    return a.status, a.server, b'[DONE]' in a.body
                except (OSError, ValueError) as error:
                    return 0, '', repr(error)
                except Exception as error:
                    return -1, '', repr(error)

            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                futures = [pool.submit(one, i) for i in range(12)]
                time.sleep(1)
                bed.kill_engine(bed.engines[0])
                results = [f.result() for f in futures]
            whole = [r for r in results if r[0] == 200 and r[2] is True]
            assert len(whole) >= 4, results
            answers = at_once(12, lambda i: bed.chat([user('x%d' % i)]))
            all_ok(answers)
            no_calls_left(bed)
            ends = bed.ends()
        return '%d whole, %d cut; %s' % (len(whole),
            len(results) - len(whole), ends)

    def case_clients_leave(self):
        """clients that leave within a stream leave no call"""
        with self.bed(scale='1') as bed:
            for i in range(20):
                body = json.dumps({'model': 'm', 'stream': True,
                    'max_tokens': 2000, 'messages': [user('leave %d %s' % (i,
                        words(200, i)))]}).encode()
                s = socket.create_connection(('127.0.0.1', bed.port))
                s.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n'
                    b'content-type: application/json\r\n'
                    b'content-length: %d\r\n\r\n' % len(body) + body)
                if i % 2:
                    s.recv(300)
                s.close()
            no_calls_left(bed)
            ends = bed.ends()
        return str(ends)

    def case_large_bodies(self):
        """bodies of 400 kB, and a stream behind them"""
        with self.bed(scale='0.0001', engine=['--capacity', '4000000']) as bed:
            text = words(60000, 7)
            answers = at_once(8, lambda i: bed.chat([user(text),
                user('%d' % i)], stream=i % 2 == 1), threads=4)
            all_ok(answers)
            no_calls_left(bed)
        return '%d bytes; %s' % (len(text), count(a.server for a in answers))

    def case_many_calls(self):
        """10,000 calls over one connection of Envoy, in the same memory"""
        with self.bed(scale='0.0001',
                pool='size=4m workers=8 affinity=64') as bed:
            servers = many_calls(bed)
            first = bed.memory()
            servers += many_calls(bed)
            last = bed.memory()
            no_calls_left(bed)
            status = bed.status()['pick']
            assert status['streams_total'] >= 10000, status
            assert last - first < 500, 'from %d to %d kB' % (first, last)
            assert status['connections_total'] <= 4, status
        return '%s; %d kB; %d connections' % (count(servers), last,
            status['connections_total'])

    def case_picker_restarted(self):
        """the picker is restarted under load: clients may retry for a moment"""
        with self.bed(scale='0.01') as bed:
            stop = time.monotonic() + 6

            def work(t):
                ok = bad = 0
                i = 0
                while time.monotonic() < stop:
                    i += 1
                    status = bed.chat([user('%d %d %s' % (t, i, words(40,
                        t)))]).status
                    ok += status == 200
                    bad += status != 200
                    if status != 200:
                        time.sleep(0.05)
                return ok, bad

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                futures = [pool.submit(work, t) for t in range(4)]
                time.sleep(2)
                code = bed.stop('pick', signal.SIGTERM)
                bed.start_picker()
                results = [f.result() for f in futures]
            assert code == 0, code
            answers = at_once(8, lambda i: bed.chat([user('%d' % i)]))
            all_ok(answers)
            no_calls_left(bed)
        return '%d answered, %d refused meanwhile' % (
            sum(r[0] for r in results), sum(r[1] for r in results))

    def case_picker_dead(self):
        """a dead picker: failure_mode_allow false refuses all"""
        with self.bed() as bed:
            bed.stop('pick', signal.SIGKILL)
            answer = bed.chat([user('x')])
            assert answer.status >= 500, answer.status
            bed.start_picker()
            wait_for(lambda: bed.chat([user('x')]).status == 200)
        return '%d' % answer.status

    def case_picker_dead_allowed(self):
        """a dead picker with failure_mode_allow: all pass if buffered"""
        got = []
        for buffered in False, True:
            def change(text, buffered=buffered):
                text = text.replace('failure_mode_allow: false',
                    'failure_mode_allow: true')
                if buffered:
                    text = text.replace('body_mode: FULL_DUPLEX_STREAMED',
                        'body_mode: BUFFERED')
                return text

            with self.bed(change=change) as bed:
                all_ok([bed.chat([user('x')])])
                bed.stop('pick', signal.SIGKILL)
                got.append([])
                for _ in range(10):
                    got[-1].append(bed.chat([user('x')]).status)
                    time.sleep(0.1)
        assert 500 in got[0] and set(got[0]) <= {200, 500}, got
        assert set(got[1]) == {200}, got
        return 'full duplex %s; buffered %s' % tuple(count(g) for g in got)

    def case_buffered(self):
        """BUFFERED request, STREAMED response"""
        def change(text):
            return text.replace('request_body_mode: FULL_DUPLEX_STREAMED',
                'request_body_mode: BUFFERED').replace(
                'response_body_mode: FULL_DUPLEX_STREAMED',
                'response_body_mode: STREAMED')

        with self.bed(change=change) as bed:
            answers = at_once(12, lambda i: bed.chat([user('%d' % i)],
                stream=i % 2 == 1))
            all_ok(answers)
            for a in answers:
                assert a.text, a.body
            no_calls_left(bed)
        return count(a.server for a in answers)

    def case_calls_wait_in_line(self):
        """places for 3, and a line: 18 requests at once, and clients leave"""
        def change(text):
            return text.replace('request_body_mode: FULL_DUPLEX_STREAMED',
                'request_body_mode: BUFFERED')

        said = []
        for changed in lambda text: text, change:
            with self.bed(change=changed, conf='kvroute queue=30 '
                    'queue_timeout=15s;\n',
                    roles=('both max_conns=1',) * 3) as bed:
                answers = at_once(18, lambda i: bed.chat([user('%d' % i)],
                    stream=i % 2 == 1))
                all_ok(answers)
                no_calls_left(bed)
                said.append(bed.status()['pool']['upstreams'][0]['queued'])
                long = [open_chat(bed, i) for i in range(3)]
                wait_for(lambda: bed.inflight() == 3, what='three calls')
                waiting = [open_chat(bed, i) for i in range(3, 6)]
                wait_for(lambda: bed.status()['pick']['waiting'] == 3,
                    what='three that wait')
                for connection in waiting:
                    connection.close()
                wait_for(lambda: bed.status()['pick']['waiting'] == 0,
                    what='an empty line')
                for connection in long:
                    connection.close()
                no_calls_left(bed)
            assert said[-1] > 0, said
        return '%d and %d have waited' % tuple(said)

    def case_slow_engine_heals(self):
        """a slow engine gets less, and gets requests again when it is well"""
        with self.bed(scale='0.05', conf='kvroute gray=4;\n') as bed:
            def load(seconds):
                end = time.monotonic() + seconds

                def work(t):
                    servers = []
                    while time.monotonic() < end:
                        a = bed.chat([user('%s %s' % (random.random(),
                            words(250, random.random())))])
                        all_ok([a])
                        servers.append(a.server)
                    return servers
                return collections.Counter(sum(at_once(6, work), []))

            slow = str(bed.engines[0])
            before = load(3)
            bed.fault(slow, 'slow', 8)
            load(4)
            during = load(3)
            time.sleep(2)
            load(6)
            after = load(4)
        assert during[slow] < sum(during.values()) / 5, during
        assert after[slow] > sum(after.values()) / 10, after
        return '%s of %d before, %s of %d slow, %s of %d healed' % (
            before[slow], sum(before.values()), during[slow],
            sum(during.values()), after[slow], sum(after.values()))

    def case_servers_change(self):
        """a server leaves the file, and comes back"""
        with self.bed() as bed:
            gone = bed.engines[2]
            bed.engines = bed.engines[:2]
            bed.write_conf()
            wait_for(lambda: bed.servers() == 2)
            answers = at_once(12, lambda i: bed.chat([user('%d' % i)]))
            all_ok(answers)
            assert str(gone) not in {a.server for a in answers}
            bed.engines.append(gone)
            bed.write_conf()
            wait_for(lambda: bed.servers() == 3)
            more = at_once(24, lambda i: bed.chat([user('%d %s' % (i,
                words(200, i)))]))
            all_ok(more)
            assert str(gone) in {a.server for a in more}
        return '%s; %s' % (count(a.server for a in answers),
            count(a.server for a in more))


def run(kind, names):
    build, envoy, scratch, tally = sys.argv[1:]
    cases = kind(os.path.abspath(build), envoy, scratch)
    wanted = [n for n in os.environ.get('T', '').split(',') if n]
    passed = failed = 0
    for name in names:
        if wanted and name not in wanted:
            continue
        cases.name = name
        case = getattr(cases, 'case_' + name)
        begin = time.monotonic()
        try:
            text = 'ok    ' + case.__doc__ + ': ' + case()
            passed += 1
        except Exception as error:
            text = 'FAIL  ' + case.__doc__ + ': %s: %s' % (
                type(error).__name__, str(error)[:400])
            failed += 1
        print('  %s (%.1f s; T=%s)' % (text, time.monotonic() - begin, name),
            flush=True)
    if wanted and passed + failed == 0:
        print('  FAIL  there is no such case')
        failed = 1
    with open(tally, 'w') as out:
        out.write('%d %d 0\n' % (passed, failed))
    return 1 if failed else 0


def names_of(kind):
    return [n[5:] for n in vars(kind) if n.startswith('case_')]


if __name__ == '__main__':
    sys.exit(run(Cases, names_of(Cases)))
