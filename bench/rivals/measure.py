# SPDX-License-Identifier: BSD-2-Clause
"""measure.py - what is measured: loads, saturation and faults. Each function
returns the facts of one run of one gateway."""
import collections
import os
import re
import resource
import subprocess
import time

import bed
import gateways

# sessions: users send the id of theirs. slow: for gateways that take so much CPU
# that they would be all that the other loads measure.
Load = collections.namedtuple('Load', 'text engines facts users sessions slow',
                              defaults=(False,))
LOADS = {
    'agents': Load(
        'agents with tools, at most 32 at a time', 4,
        '--scale 0.016 --prefill-rate 4500 --capacity 150000',
        '--sessions 32 --chats 32 --turns 9 --agents 4 --shrink 2 '
        '--think-ms 100 --session-header X-Session-Id', True),
    'chats': Load(
        '64 users of 64 system prompts; small caches', 8,
        '--scale 0.2 --capacity 40000 --prefill-rate 9000 --sequences 256',
        '--chats 64 --requests 3000 --systems 64 --turns 8 --turn-bytes 800 '
        '--think-ms 50', False),
    'crowd': Load(
        '40 users of one system prompt; engines of 8 places', 4,
        '--scale 0.2 --sequences 8 --capacity 200000 --batch 2048 '
        '--reads own --attention 53000 --preempt',
        '--chats 40 --requests 1600 --systems 1 --system-bytes 20000 '
        '--think-ms 50', False),
    'few': Load(
        '6 agents at a time', 4,
        '--scale 0.016 --prefill-rate 4500 --capacity 150000',
        '--sessions 12 --chats 6 --turns 9 --agents 3 --shrink 2 '
        '--think-ms 100 --session-header X-Session-Id', True),
    'slow': Load(
        'agents, at most 16 at a time; engines a quarter as fast', 4,
        '--scale 0.064 --prefill-rate 4500 --capacity 150000',
        '--sessions 16 --chats 16 --turns 6 --agents 3 --shrink 4 '
        '--think-ms 1000 --session-header X-Session-Id', True, True),
}
# The tokenizer of model.py makes so many tokens of one of the stand-in's.
DYNAMO_TOKENS = 1.21
FAULTS = ('kill', '500', '503', '429', 'hang')
FAULT_ENGINES = '--scale 0.05 --prefill-rate 9000 --capacity 100000'
FAULT_USERS = ('--chats 24 --systems 16 --turns 6 --think-ms 50 '
               '--timeout 8').split()
BODIES = 8, 100     # KB
CORES = os.cpu_count()


class Place:
    """Folders, and the cores of the gateway and of all else."""

    def __init__(self, build, work):
        self.build, self.work = os.path.abspath(build), work
        self.blocks = 10000
        self.gateway_cores = self.other_cores = None

    def log(self, rival):
        return os.path.join(self.work, rival.name + '.log')


class Users:
    """kvroute-chats, with the CPU time that it took."""

    def __init__(self, place, port, options):
        pinned = ['taskset', '-c', place.other_cores] \
            if place.other_cores else []
        self.before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.begun = time.monotonic()
        with open(os.path.join(place.work, 'chats.log'), 'ab') as log:
            self.child = subprocess.Popen(
                [*pinned, os.path.join(place.build, 'kvroute-chats'), '--url',
                 'http://127.0.0.1:%d' % port, '-q', '--format', 'kv',
                 *options], stdout=subprocess.PIPE, stderr=log, text=True)

    def is_alive(self):
        return self.child.poll() is None

    def facts(self):
        text = self.child.communicate()[0]
        seconds = time.monotonic() - self.begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        facts = {}
        for line in text.split():
            name, _, value = line.partition('=')
            facts[name] = number(value)
        if 'requests' not in facts:
            raise RuntimeError('kvroute-chats has no result')
        facts['client_share'] = (
            after.ru_utime + after.ru_stime - self.before.ru_utime -
            self.before.ru_stime) / seconds
        return facts


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def run_users(place, gateway, options):
    """With the CPU time that the gateway takes a request, and its memory."""
    before, begun = gateway.usage()[0], time.monotonic()
    facts = Users(place, gateway.port, options).facts()
    after, memory = gateway.usage()
    facts['cpu_us'] = (after - before) * 1e6 / max(1, facts['requests'])
    facts['busy'] = (after - before) / (time.monotonic() - begun)
    facts['memory_mb'] = memory / 1024
    return facts


# -------------------------------------------------------------------- loads

def for_dynamo(facts):
    return re.sub(r'--(capacity|prefill-rate) (\d+)', lambda found: '--%s %d' %
                  (found[1], int(int(found[2]) * DYNAMO_TOKENS) // 16 * 16),
                  facts)


def run_load(place, rival, name, turn, seconds):
    load = LOADS[name]
    facts = for_dynamo(load.facts) if rival.program == 'dynamo' else load.facts
    place.blocks = int(re.search(r'--capacity (\d+)', facts)[1]) // 16
    options = [*load.users.split(), '--seed', str(turn)]
    if seconds:
        options += ['--seconds', str(seconds)]
    with bed.Engines(place.build, place.work, load.engines, facts,
                     rival.events) as engines:
        with gateways.Gateway(place, rival, engines) as gateway:
            before, begun = engines.cpu(), time.monotonic()
            facts = run_users(place, gateway, options)
            facts['engines_share'] = (engines.cpu() - before) / (
                time.monotonic() - begun)
    return facts


# --------------------------------------------------------------- saturation

ANSWERS = {
    '/': ('application/json', '{"id":"a","object":"chat.completion",'
          '"created":1,"model":"kvroute","choices":[{"index":0,'
          '"finish_reason":"stop","message":{"role":"assistant",'
          '"content":"a"}}],"usage":{"prompt_tokens":2000,"total_tokens":2001,'
          '"prompt_tokens_details":{"cached_tokens":1000},'
          '"completion_tokens":1}}'),
    '= /v1/completions': ('text/event-stream', 'data: {"choices":[{"index":0,'
                          '"text":" a","finish_reason":"stop"}]}\\n\\n'
                          'data: [DONE]\\n\\n'),
    '= /v1/models': ('application/json', '{"object":"list","data":[{"id":'
                     '"kvroute","object":"model","owned_by":"vllm"}]}'),
    '= /version': ('application/json', '{"version":"0.20.0"}'),
    '= /health': ('text/plain', ''),
    '= /metrics': ('text/plain', 'vllm:num_requests_running{engine=\\"0\\"} '
                   '0\\n'),
}
ABSENT = ('server_info get_server_info loads v1/loads model_info '
          'get_model_info').split()


class Answers:
    """nginx in place of engines: it answers at once."""

    def __init__(self, place, n):
        self.ports, self.publishers = bed.free_ports(n), bed.free_ports(n)
        work = os.path.join(place.work, 'answers-%d' % self.ports[0])
        os.makedirs(work)
        with open(work + '/conf', 'w') as file:
            file.write(self.conf(work))
        self.process = bed.Process(
            ['nginx', '-p', work, '-e', work + '/error', '-c', work + '/conf',
             '-g', 'daemon off;'], work + '/log', place.other_cores)

    def conf(self, work):
        places = ''.join(
            'location %s { default_type %s; return 200 "%s"; }\n' % (
                path, kind, text.replace('\\"', '"').replace('"', '\\"'))
            for path, (kind, text) in ANSWERS.items())
        places += ''.join('location = /%s { return 404; }\n' % path
                          for path in ABSENT)
        servers = ''.join('server { listen 127.0.0.1:%d; %s }\n' % (
            port, places) for port in self.ports)
        user = 'user root root;' if os.getuid() == 0 else ''
        return (f'worker_processes 1; pid {work}/pid; {user}\n'
                'events { worker_connections 4096; }\nhttp { access_log off;\n'
                f'client_body_temp_path {work}/body; client_max_body_size 64m;'
                '\nclient_body_buffer_size 1m; keepalive_requests 100000000;\n'
                + servers + '}\n')

    def endpoint(self, i):
        return 'tcp://127.0.0.1:%d' % self.publishers[i]

    def __enter__(self):
        if not bed.until(lambda: bed.request(self.ports[0], 'GET',
                                             '/health')[0] == 200, 20):
            raise RuntimeError(self.process.last_lines())
        return self

    def __exit__(self, *_):
        self.process.stop()


def make_body(place, kb, new):
    """A request in a file; in each one sent its end is other, or all of it."""
    more = ['--turn-bytes', '2000'] if kb > 50 else []
    text = subprocess.run(
        [os.path.join(place.build, 'kvroute-chats'), '--make-body',
         '%d000' % kb, '--no-stream', *more], check=True,
        stdout=subprocess.PIPE).stdout
    if new:
        text = text.replace(b'0000000000', b'1111111111')
        text = text.replace(b'"content":"', b'"content":"0000000000 ', 1)
    text = text.replace(b'{', b'{"max_tokens":1,', 1)
    path = os.path.join(place.work, 'body-%d-%d' % (kb, new))
    with open(path, 'wb') as file:
        file.write(text)
    return path


def run_saturation(place, rival, _name, _turn, seconds):
    """The gateway has the first core, its users and engines the others."""
    place.gateway_cores = '0'
    place.other_cores = '1-%d' % (CORES - 1)
    facts = {}
    try:
        with Answers(place, 4) as engines:
            with gateways.Gateway(place, rival, engines) as gateway:
                for kb in BODIES:
                    for new in (False, True):
                        options = ['--body', make_body(place, kb, new),
                                   '--vary', '--no-stream', '--chats', '16',
                                   '--seconds', str(seconds or 8)]
                        facts['%d %s' % (kb, 'new' if new else 'old')] = \
                            run_users(place, gateway, options)
    finally:
        place.gateway_cores = place.other_cores = None
    return facts


# ------------------------------------------------------------------- faults

def finished(port):
    """Requests that the engine has served, or None."""
    text = bed.request(port, 'GET', '/metrics', seconds=1)[1].decode()
    found = re.search(r'^vllm:request_success_total\S* (\S+)', text, re.M)
    return float(found[1]) if found else None


def begin_fault(engines, name, seconds):
    if name == 'kill':
        engines.all[0].stop()
        return
    kind = 'kind=stall' if name == 'hang' else \
        'kind=error&status=%s&percent=100' % name
    bed.request(engines.ports[0], 'POST', '/fault?%s&seconds=%d' % (
        kind, max(1, seconds)), b'')


def watch_return(engines, users, since):
    """Seconds until the engine has half of its share in half a second."""
    last = [finished(port) or 0 for port in engines.ports]
    while users.is_alive():
        time.sleep(.5)
        now = [finished(port) for port in engines.ports]
        if None in now:
            continue
        new = [b - a for a, b in zip(last, now)]
        if new[0] >= 2 and new[0] > sum(new) / len(new) / 2:
            return time.monotonic() - since
        last = now
    return None


def run_fault(place, rival, name, _turn, seconds):
    """A fault for 10 of 26 seconds, or for as large a part of `seconds`."""
    seconds = seconds or 26
    facts = for_dynamo(FAULT_ENGINES) if rival.program == 'dynamo' else \
        FAULT_ENGINES
    place.blocks = 100000 // 16
    with bed.Engines(place.build, place.work, 4, facts,
                     rival.events) as engines:
        with gateways.Gateway(place, rival, engines) as gateway:
            users = Users(place, gateway.port,
                          [*FAULT_USERS, '--seconds', str(seconds)])
            time.sleep(seconds * 6 / 26)
            begin_fault(engines, name, seconds * 10 / 26)
            time.sleep(seconds * 10 / 26)
            if name == 'kill':
                engines.all[0].start()
            back = watch_return(engines, users, time.monotonic())
            facts = users.facts()
    facts['back_s'] = back
    return facts
