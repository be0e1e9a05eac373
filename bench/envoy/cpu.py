#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cpu.py BUILD ENVOY SCRATCH - CPU time of a request in Envoy: plain, with the
dynamic module, and with kvroute-pick.

The three run at once, each with three stand-in engines, and are loaded in
turns, so that disturbances of the machine affect all. A row is the median of
ROUNDS=5, each of REQUESTS=2000 (a tenth for long bodies) over 8 connections,
in microseconds of the processes; x: the multiple of plain Envoy.
"""
import concurrent.futures
import json
import os
import re
import shutil
import socket
import statistics
import sys

for folder in 'pick', 'envoy':
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..',
        'tests', folder))

from bed import Bed
from envoy import user, words
from module import ModuleBed

CONNECTIONS = 8
ROUNDS = int(os.environ.get('ROUNDS') or 5)
REQUESTS = int(os.environ.get('REQUESTS') or 2000)
# Name, bytes of the prompt, tokens of the answer, a stream?, share of requests
LOADS = (('8 kB', 8000, 1, False, 1), ('8 kB, 64-token stream', 8000, 64,
    True, 1), ('400 kB', 400000, 1, False, 10))


def plain(text):
    """The example without the filter and its policy."""
    text = re.sub(r'          - name: envoy.filters.http.dynamic_modules\n'
        r'(?: {12}.*\n)+', '', text)
    return re.sub(r'    load_balancing_policy:\n(?: {6}.*\n)+', '', text)


class PlainBed(ModuleBed):
    def write_envoy(self):
        text = plain(self.envoy_text())
        with open(self.path('envoy.yaml'), 'w') as out:
            out.write(text[:text.index('  - name: status\n')] +
                text[text.index('  clusters:\n'):])

    def start_envoy(self):
        Bed.start_envoy(self)


def request_of(prompt, tokens, stream, i):
    body = json.dumps({'model': 'm', 'max_tokens': tokens, 'stream': stream,
        'messages': [user(prompt), user('question %d' % i)]}).encode()
    return b'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n' \
        b'content-type: application/json\r\ncontent-length: %d\r\n\r\n' % \
        len(body) + body


def read_answer(s):
    """A whole answer: by its length, or to the last chunk."""
    got = b''
    while b'\r\n\r\n' not in got:
        got += s.recv(65536)
    head, rest = got.split(b'\r\n\r\n', 1)
    assert head.startswith(b'HTTP/1.1 200'), got[:300]
    length = re.search(rb'content-length: (\d+)', head)
    while len(rest) < int(length.group(1)) if length else \
            not rest.endswith(b'0\r\n\r\n'):
        piece = s.recv(65536)
        assert piece, 'the stream is cut'
        rest += piece


def cpu_ns(process):
    total = 0
    for task in os.listdir('/proc/%d/task' % process.pid):
        with open('/proc/%d/task/%s/schedstat' % (process.pid, task)) as file:
            total += int(file.read().split()[0])
    return total


def load(bed, requests, n):
    """Microseconds of each process for one request."""
    def work(t):
        s = socket.create_connection(('127.0.0.1', bed.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(t, n, CONNECTIONS):
            s.sendall(requests[i % len(requests)])
            read_answer(s)
        s.close()

    names = [p for p in ('envoy', 'pick') if p in bed.processes]
    before = [cpu_ns(bed.processes[p]) for p in names]
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(work, range(CONNECTIONS)))
    return [(cpu_ns(bed.processes[p]) - b) / n / 1000
        for p, b in zip(names, before)]


def main():
    build, envoy, scratch = sys.argv[1:]
    shutil.rmtree(scratch, ignore_errors=True)
    beds = []
    for kind in PlainBed, ModuleBed, Bed:
        folder = os.path.join(scratch, kind.__name__)
        os.makedirs(folder)
        beds.append(kind(os.path.abspath(build), envoy, folder, scale='0.0001',
            engine=['--capacity', '4000000']))
    with beds[0], beds[1], beds[2]:
        print('%-22s %8s %8s %5s %8s %8s %5s' % ('CPU us', 'plain', 'module',
            'x', 'Envoy', '+ picker', 'x'))
        for name, size, tokens, stream, share in LOADS:
            requests = [request_of(words(size // 6, i % 16)[:size], tokens,
                stream, i) for i in range(64)]
            rounds = [[load(b, requests, REQUESTS // share) for b in beds]
                for _ in range(ROUNDS + 1)][1:]
            p, m, e, k = [statistics.median(values) for values in zip(
                *(sum(r, []) for r in rounds))]
            print('%-22s %8.0f %8.0f %5.2f %8.0f %8.0f %5.2f' % (name, p, m,
                m / p, e, k, (e + k) / p), flush=True)


if __name__ == '__main__':
    main()
