# SPDX-License-Identifier: BSD-2-Clause
"""Three stand-in engines, kvroute-pick and Envoy, for cases of envoy.py."""
import contextlib
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

ENGINES = 3
EXAMPLE = 'examples/envoy.yaml'
TLS = '''    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: { alpn_protocols: [h2] }
'''


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(('127.0.0.1', 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_for(true, seconds=30, what='it'):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if true():
                return
        except (OSError, http.client.HTTPException, ValueError):
            pass
        time.sleep(0.05)
    raise AssertionError('%s did not happen in %d s' % (what, seconds))


def listens(port):
    with socket.create_connection(('127.0.0.1', port), 1):
        return True


class Echo(http.server.BaseHTTPRequestHandler):
    """An engine whose answer is the value of one header of the request."""
    header = 'x-prefiller-host-port'
    protocol_version = 'HTTP/1.1'

    def read_body(self):
        if 'content-length' in self.headers:
            self.rfile.read(int(self.headers['content-length']))
            return
        while int(size := self.rfile.readline(), 16) > 0:
            self.rfile.read(int(size, 16) + 2)
        self.rfile.readline()

    def do_POST(self):
        self.read_body()
        body = json.dumps({'choices': [{'index': 0, 'message': {
            'role': 'assistant', 'content': self.headers.get(self.header)}}],
            'usage': {'prompt_tokens': 9, 'completion_tokens': 1}}).encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.server = (headers.get('x-served-by') or '').rsplit(':', 1)[-1]
        self.headers = headers
        self.body = body
        self.usage = None
        self.text = ''
        if status != 200:
            return
        if 'event-stream' not in (headers.get('content-type') or ''):
            whole = json.loads(body)
            self.usage = whole.get('usage')
            self.text = whole['choices'][0]['message']['content'] or ''
            return
        for line in body.decode().split('\n'):
            if not line.startswith('data: {'):
                continue
            event = json.loads(line[6:])
            self.usage = event.get('usage') or self.usage
            for choice in event['choices']:
                self.text += choice['delta'].get('content') or ''

    @property
    def cached(self):
        details = (self.usage or {}).get('prompt_tokens_details') or {}
        return details.get('cached_tokens') or 0


class Bed:
    envoy_options = ()

    def __init__(self, build, envoy, folder, options=(), conf='', tls=False,
            scale='0.05', change=lambda text: text, engine=(),
            pool='size=64m affinity=65536', roles=('both',) * ENGINES):
        self.build, self.envoy_path, self.folder = build, envoy, folder
        self.options = list(options)
        ports = free_ports(ENGINES + 5)
        self.engines = ports[:ENGINES]
        (self.port, self.grpc, self.health, self.metrics,
            self.listen) = ports[ENGINES:]
        self.tls, self.change, self.scale = tls, change, scale
        self.engine_options = list(engine)
        self.pool, self.roles = pool, roles
        self.processes = {}
        self.write_conf(conf)
        self.write_envoy()

    # ------------------------------------------------------------ processes

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, name, command):
        log = open(self.path(name + '.log'), 'ab')
        self.processes[name] = subprocess.Popen(command, stdout=log,
            stderr=log, stdin=subprocess.DEVNULL)
        log.close()

    def write_conf(self, more=''):
        with open(self.path('pick.conf'), 'w') as out:
            out.write('kvroute %s;\nkvroute_include_usage on;\n%s' % (
                self.pool, more))
            for port, role in zip(self.engines, self.roles):
                out.write('server 127.0.0.1:%d capacity=400000 role=%s;\n' % (
                    port, role))

    def write_envoy(self):
        with open(EXAMPLE) as source:
            text = source.read()
        places = {8080: self.port, 9002: self.grpc}
        places.update(zip((8001, 8002, 8003), self.engines))
        for old, new in places.items():
            text = text.replace('port_value: %d ' % old,
                'port_value: %d ' % new)
        if self.tls:
            text = text.replace('    load_assignment:\n'
                '      cluster_name: picker\n', TLS + '    load_assignment:\n'
                '      cluster_name: picker\n')
        with open(self.path('envoy.yaml'), 'w') as out:
            out.write(self.change(text))

    def start_engine(self, i):
        self.start('engine%d' % i, [self.build + '/kvroute-engine', '--port',
            str(self.engines[i]), '--model', 'm', '--scale', self.scale] +
            self.engine_options)
        wait_for(lambda: listens(self.engines[i]), what='engine %d' % i)

    def start_picker(self):
        self.start('pick', [self.build + '/kvroute-pick', '-c',
            self.path('pick.conf'), '--grpc-port', str(self.grpc),
            '--grpc-health-port', str(self.health), '--metrics-port',
            str(self.metrics), '--listen', '127.0.0.1:%d' % self.listen,
            '--secure-serving', 'true' if self.tls else 'false'] +
            self.options)
        wait_for(lambda: self.get('/healthz') == {'ready': True},
            what='kvroute-pick')

    def start_envoy(self):
        self.start('envoy', [self.envoy_path, '-c', self.path('envoy.yaml'),
            '--base-id', str(os.getpid() * 100 % 1000000 + self.port % 100),
            '--concurrency', '2', '-l', 'warning', *self.envoy_options])
        wait_for(lambda: listens(self.port), what='Envoy')

    def __enter__(self):
        try:
            for i in range(ENGINES):
                self.start_engine(i)
            self.start_picker()
            self.start_envoy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self.processes):
            self.stop(name, signal.SIGKILL)

    def stop(self, name, number):
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(60)

    def kill_engine(self, port):
        self.stop('engine%d' % self.engines.index(int(port)), signal.SIGKILL)

    @contextlib.contextmanager
    def echoing(self, ports):
        """In place of these engines."""
        servers = []
        for port in ports:
            self.kill_engine(port)
            servers.append(http.server.ThreadingHTTPServer(
                ('127.0.0.1', port), Echo))
            threading.Thread(target=servers[-1].serve_forever,
                daemon=True).start()
        try:
            yield
        finally:
            for server in servers:
                server.shutdown()
                server.server_close()

    # ------------------------------------------------------------- requests

    def get(self, path):
        with urllib.request.urlopen('http://127.0.0.1:%d%s' % (self.metrics,
                path), timeout=10) as answer:
            return json.load(answer)

    def status(self):
        return self.get('/v1/status')

    def inflight(self):
        """Of the gateway's requests, as the picker counts them."""
        s = self.status()['pick']
        return s['streams']

    def ends(self):
        """How calls have ended."""
        return self.status()['pick']['ended']

    def servers(self):
        return self.status()['pick']['servers']

    def memory(self, name='pick'):
        """Of a process, in kB."""
        with open('/proc/%d/status' % self.processes[name].pid) as file:
            return int([line.split()[1] for line in file
                if line.startswith('VmRSS')][0])

    def fault(self, port, kind, seconds):
        urllib.request.urlopen(urllib.request.Request(
            'http://127.0.0.1:%s/fault?kind=%s&seconds=%d' % (port, kind,
            seconds), method='POST', data=b''), timeout=10).close()

    def connect(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)

    def chat(self, messages, connection=None, headers=(), **more):
        body = dict({'model': 'm', 'messages': messages, 'max_tokens': 16},
            **more)
        c = connection or self.connect()
        c.request('POST', '/v1/chat/completions', json.dumps(body),
            dict({'content-type': 'application/json'}, **dict(headers)))
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        if connection is None:
            c.close()
        return answer
