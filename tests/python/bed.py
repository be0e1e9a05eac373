# SPDX-License-Identifier: BSD-2-Clause
"""Engines and other programs for tests, and a wait."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

build, folder, scratch = (os.path.abspath(a) for a in sys.argv[1:4])
suite = os.path.basename(folder)
root = os.path.dirname(os.path.dirname(folder))


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError('it did not happen')
        time.sleep(.02)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


class Engine:
    """kvroute-engine, in a process of its own."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [os.path.join(build, 'kvroute-engine'), '--port', '0', '--model',
             'm', '--scale', '0.02', '--for', '600', *options],
            stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().strip()
                        .rpartition(':')[2])
        self.name = f'127.0.0.1:{self.port}'

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def fault(self, query):
        urllib.request.urlopen(urllib.request.Request(
            f'http://{self.name}/fault?{query}', method='POST')).read()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class EngineTest(unittest.TestCase):
    engines_n = 2
    engine_options = ()

    def setUp(self):
        self.engines = [Engine(*self.engine_options)
                        for _ in range(self.engines_n)]
        for engine in self.engines:
            self.addCleanup(engine.end)

    def names(self):
        return [engine.name for engine in self.engines]

    def engine(self, name):
        return next(e for e in self.engines if e.name == name)


def chat(words, n=400):
    return [{'role': 'user', 'content': f'{words}: ' + ' '.join(
        f'{words}{i}' for i in range(n))}]


def body(messages, **more):
    return json.dumps({'model': 'm', 'messages': messages, **more}).encode()


def leases(pool):
    """Requests in flight, by the library."""
    return int(re.search(r'^kvroute_leases(?:\{.*\})? (\d+)$', pool.metrics(),
                         re.M)[1])


def usages(pool):
    """Prompt tokens that engines have reported."""
    return int(re.search(r'^kvroute_usage_prompt_tokens_total(?:\{.*\})? (\d+)$',
                         pool.metrics(), re.M)[1])
