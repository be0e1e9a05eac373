# SPDX-License-Identifier: BSD-2-Clause
"""bed.py - the programs under test, each an object that starts and stops one:

    requests --> Nginx ----> Engine --events--> Daemon --> region
             --> Gateway --> Engine

Every process is in a session of its own, which ends with the object. `timeout`
ends it where that did not happen.
"""
import atexit
import glob
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

BLOCK = 32          # tokens of an engine's block; on CPU a multiple of 32
BLOCKS = 400        # of an engine's cache
LIFE = 2400         # seconds; no process is older
MODEL = 'tiny'

here = os.path.dirname(os.path.abspath(__file__))
pages = sorted(glob.glob(os.path.join(here, '../../man/kvroute*.[1-8]')))
build = scratch = work = python = None
running = []


def begin(build_folder, scratch_folder, python_of_vllm):
    global build, scratch, work, python
    build = os.path.abspath(build_folder)
    scratch = os.path.abspath(scratch_folder)
    work = os.path.join(scratch, 'work')
    python = os.path.abspath(python_of_vllm)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    atexit.register(end)


def end():
    for process in list(running):
        process.stop(signal.SIGKILL)


def make_model():
    with open(os.path.join(work, 'model.log'), 'w') as log:
        subprocess.run([python, os.path.join(here, 'model.py'),
                        os.path.join(work, 'model'), *pages], check=True,
                       stdout=log, stderr=log)


def free_ports(n):
    """The first of n ports in a row, below those that the kernel assigns."""
    for _ in range(100):
        first = random.randrange(10240, 32000 - n)
        taken = []
        try:
            for port in range(first, first + n):
                taken.append(socket.create_server(('127.0.0.1', port)))
        except OSError:
            continue
        finally:
            for one in taken:
                one.close()
        return first
    raise RuntimeError('there are no free ports')


def until(condition, seconds, what):
    end_time = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end_time:
            raise RuntimeError('never: ' + what)
        time.sleep(0.05)


class Process:
    """A program with a log of its own."""
    name = None
    child = None

    def spawn(self, *command, **environment):
        self.log = os.path.join(work, self.name + '.log')
        with open(self.log, 'ab') as log:
            self.child = subprocess.Popen(
                ['timeout', '-k', '5', str(LIFE), *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=work,
                start_new_session=True, env={**os.environ, **environment})
        running.append(self)

    def kill(self, number):
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass

    def stop(self, number=signal.SIGTERM):
        if self.child is None:
            return
        self.kill(number)
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            pass
        self.kill(signal.SIGKILL)
        self.child.wait()
        self.child = None
        running.remove(self)

    def is_alive(self):
        return self.child is not None and self.child.poll() is None

    def until_answers(self, port, path, seconds):
        def answers():
            if not self.is_alive():
                raise RuntimeError('%s does not start: %s' %
                                   (self.name, self.last_lines()))
            try:
                return get(port, path)[0] == 200
            except OSError:
                return False
        until(answers, seconds, self.name + ' answers')

    def last_lines(self, n=15):
        with open(self.log, errors='replace') as log:
            return ''.join(log.readlines()[-n:])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


def get(port, path, method='GET', seconds=30):
    """Status and text."""
    connection = http.client.HTTPConnection('127.0.0.1', port,
                                            timeout=seconds)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


# ----------------------------------------------------------------- engines

class Engine(Process):
    """vLLM, with events and their replay."""
    kind = 'vllm'
    reports_zero = True    # cached tokens, in answers of all endpoints
    count = 0

    def __init__(self, blocks=BLOCKS, ranks=1):
        self.name = 'engine%d' % Engine.count
        Engine.count += 1
        self.blocks, self.ranks = blocks, ranks
        self.port = free_ports(1 + 2 * ranks)
        self.events = 'tcp://127.0.0.1:%d' % (self.port + 1)
        self.replay = 'tcp://127.0.0.1:%d' % (self.port + 1 + ranks)
        self.address = '127.0.0.1:%d' % self.port

    @property
    def tokens(self):
        return self.blocks * BLOCK

    def start(self):
        events = {'enable_kv_cache_events': True, 'publisher': 'zmq',
                  # With an address in place of * it would connect.
                  'endpoint': self.events.replace('127.0.0.1', '*'),
                  'replay_endpoint': self.replay, 'buffer_steps': 10000}
        ranks = [] if self.ranks == 1 else \
            ['--data-parallel-size', self.ranks]
        self.spawn(
            python, os.path.join(os.path.dirname(python), 'vllm'), 'serve',
            os.path.join(work, 'model'),
            '--served-model-name', MODEL, '--host', '127.0.0.1',
            '--port', self.port, '--dtype', 'bfloat16', '--enforce-eager',
            '--enable-prefix-caching', '--enable-prompt-tokens-details',
            '--kv-events-config', json.dumps(events),
            '--block-size', BLOCK, '--num-gpu-blocks-override', self.blocks,
            # A block is never used, so the cache holds a little less.
            '--max-model-len', self.tokens // 2, '--max-num-seqs', 8,
            '--max-num-batched-tokens', 2048, *ranks,
            # The first prompt_logprobs would compile for a minute.
            TORCH_COMPILE_DISABLE='1',
            VLLM_CPU_KVCACHE_SPACE='1', VLLM_CPU_OMP_THREADS_BIND='nobind',
            OMP_NUM_THREADS='1', VLLM_SERVER_DEV_MODE='1',
            VLLM_ENABLE_RESPONSES_API_STORE='1', VLLM_NO_USAGE_STATS='1',
            DO_NOT_TRACK='1', HF_HUB_OFFLINE='1')

    def wait(self):
        self.until_answers(self.port, '/health', 600)

    def reset(self):
        """Empties its prefix cache."""
        status, text = get(self.port, '/reset_prefix_cache', 'POST')
        assert status == 200, text

    def metric(self, name):
        return sum(float(line.split()[-1]) for line in
                   get(self.port, '/metrics')[1].splitlines()
                   if line.startswith(name))

    def is_idle(self):
        return self.metric('vllm:num_requests_running') == 0

    def __enter__(self):
        self.start()
        self.wait()
        return self


# ------------------------------------------------------------------- nginx

FIELDS = ['status', 'upstream_addr', 'kvroute_reason', 'kvroute_blocks',
          'kvroute_overlap', 'kvroute_overlap_tokens', 'kvroute_cached',
          'kvroute_rank', 'http_x_id']


class Nginx(Process):
    """nginx with kvroute; `facts` are those of each server."""
    name = 'nginx'

    def __init__(self, engines, options='zone=kv:8m block=64', facts='',
                 location='', keepalive_timeout='4s'):
        self.engines, self.options, self.facts = engines, options, facts
        self.location = location
        self.keepalive_timeout = keepalive_timeout
        self.port = free_ports(1)
        self.access = os.path.join(work, 'access%d' % self.port)

    def servers(self):
        for engine in self.engines:
            yield 'server %s;' % engine.address
            if self.facts:
                yield 'kvroute_server %s %s;' % (engine.address, self.facts)

    def conf(self):
        temps = '\n'.join('%s_temp_path %s/tmp/%s;' % (temp, work, temp)
                          for temp in ('client_body', 'proxy', 'fastcgi',
                                       'uwsgi', 'scgi'))
        log = ' '.join('"$%s"' % field for field in FIELDS)
        timeout = 'keepalive_timeout %s;' % self.keepalive_timeout \
            if self.keepalive_timeout else ''
        return f'''
load_module {build}/nginx/ngx_http_upstream_kvroute_module.so;
{'user root;' if os.getuid() == 0 else ''}
worker_processes 1;
pid {work}/nginx.pid;
events {{ worker_connections 512; }}
http {{
    {temps}
    log_format kv '{log}';
    upstream engines {{
        zone engines 64k;
        kvroute {self.options};
        {' '.join(self.servers())}
        keepalive 64;
        {timeout}
    }}
    server {{
        listen 127.0.0.1:{self.port};
        client_max_body_size 16m;
        access_log {self.access} kv;
        location /v1/ {{
            proxy_pass http://engines;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 300s;
            {self.location}
        }}
        location /kvroute {{
            kvroute_status;
            access_log off;
            allow 127.0.0.1;
            deny all;
        }}
    }}
}}
'''

    def start(self):
        os.makedirs(os.path.join(work, 'tmp'), exist_ok=True)
        conf = os.path.join(work, 'nginx.conf')
        with open(conf, 'w') as file:
            file.write(self.conf())
        path = os.environ['PATH'] + ':/usr/sbin:/sbin'
        self.spawn(os.environ.get('NGINX_BIN', 'nginx'), '-p', work,
                   '-c', conf, '-e', os.path.join(work, 'nginx.error'),
                   '-g', 'daemon off;', PATH=path)
        self.until_answers(self.port, '/kvroute', 30)

    def status(self):
        return json.loads(get(self.port, '/kvroute/json')[1])['upstreams'][0]

    def lines(self):
        """The log, an object for each line."""
        if not os.path.exists(self.access):
            return []
        with open(self.access) as file:
            return [dict(zip(FIELDS, line.rstrip('\n').strip('"').split(
                '" "'))) for line in file if line.endswith('\n')]

    def line(self, name):
        """The line of the request of this X-Id."""
        def found():
            return any(line['http_x_id'] == name for line in self.lines())
        until(found, 10, 'a line of ' + name)
        return next(line for line in self.lines()
                    if line['http_x_id'] == name)

    def until_capacities(self, tokens):
        until(lambda: all(worker['capacity'] == tokens
                          for worker in self.status()['workers']),
              30, 'a capacity of %d' % tokens)


# ------------------------------------------------- gateway, kvroute-events

class Gateway(Process):
    """examples/gateway.c; its workers know their blocks from events."""
    name = 'gateway'

    def __init__(self, engines, region):
        self.engines, self.region = engines, region
        self.port = free_ports(1)

    def start(self):
        self.spawn(os.path.join(build, 'gateway'), self.port, self.region,
                   *(engine.address for engine in self.engines))

        def answers():
            try:
                get(self.port, '/')
                return True
            except OSError:
                return False
        until(answers, 30, 'the gateway answers')


class Daemon(Process):
    """kvroute-events."""
    name = 'events'

    def __init__(self, engines, region, replay=True):
        self.engines, self.region, self.replay = engines, region, replay
        self.socket = os.path.join(work, 'events.socket')

    def entry(self, engine):
        entry = {'worker': engine.address, 'engine': engine.kind,
                 'events': engine.events}
        if self.replay:
            entry['replay'] = engine.replay
        if engine.ranks > 1:
            entry['ranks'] = engine.ranks
        return entry

    def start(self):
        conf = os.path.join(work, 'events.json')
        with open(conf, 'w') as file:
            json.dump({'workers': [self.entry(e) for e in self.engines]},
                      file)
        self.spawn(os.path.join(build, 'kvroute-events'), '-c', conf,
                   '--socket', self.socket, self.region)
        until(lambda: all(w['phase'] == 'live' for w in self.workers()), 60,
              'all streams are live')

    def workers(self):
        """The status of each worker; none if the daemon is not up."""
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(self.socket)
                client.sendall(b'GET /status HTTP/1.0\r\n\r\n')
                text = b''.join(iter(lambda: client.recv(65536), b''))
            except OSError:
                return [{'phase': 'absent'}]
        try:
            status = json.loads(text.partition(b'\r\n\r\n')[2])
        except ValueError:
            return [{'phase': 'absent'}]
        return [worker for region in status['regions']
                for worker in region['workers']]

    def sum(self, name):
        return sum(worker[name] for worker in self.workers())

    def states(self):
        return [worker['state'] for worker in self.workers()]

    def settle(self):
        """Waits until engines have no more to say about their last steps."""
        last, same = None, 0
        while same < 3:
            time.sleep(0.04)
            now = [w.get('next') for w in self.workers()]
            same = same + 1 if now == last else 0
            last = now


def new_region(name):
    path = os.path.join(work, name)
    for old in glob.glob(path + '*'):
        os.remove(old)
    return path
