# SPDX-License-Identifier: BSD-2-Clause
"""conformance.py conf|run FOLDER PORT A B C - tests/http/conformance.jsonl by
nginx, which listens on PORT, with engines on the ports A, B and C that send
the responses of the file in its pieces. "conf" prints the configuration: for
each line an upstream and a server of its own. "run" sends the requests, and
prints each difference. tests/http/conformance.md has the members of a line.

nginx does not show whether a stream was requested, nor the further targets.
When an engine breaks off, nginx leaves out an event that has no end.
"""
import json
import os
import selectors
import socket
import sys
import time

# A tie takes any server: the first one that is tried must refuse.
COPIES = 24
WAIT = 60
PLAIN = {'a:1': '', 'b:1': ''}
OPTIONS = {'include_usage=off': 'kvroute_include_usage off;',
           'feedback=off': 'kvroute_feedback off;',
           'affinity_key=auto': 'kvroute_affinity auto;', '': ''}
TOLD = {'tenant': 'kvroute_scope $http_x_tenant;',
        'session': 'kvroute_affinity $http_x_session;',
        'salt': 'kvroute_salt $http_x_salt;',
        'bypass': 'kvroute_bypass $http_x_bypass;'}
LOG = ('$http_x_call\\t$kvroute_reason\\t$kvroute_model\\t$kvroute_overlap\\t'
       '$kvroute_cached\\t$kvroute_ttft\\t$upstream_addr')
FAILED = b'HTTP/1.1 503 So\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'


def rows():
    with open('tests/http/conformance.jsonl') as f:
        return [json.loads(line) for line in f]


def copies_of(row):
    refused = any('refused' in c.get('fails', ()) for c in row['calls'])
    return COPIES if refused else 1


# --------------------------------------------------------------------- conf

def server_lines(row, ports):
    servers = row.get('servers', PLAIN)
    for name, facts in servers.items():
        address = f'127.0.0.1:{ports[name]}'
        down = 'state=down' in facts
        yield f'server {address}{" down" if down else ""};'
        facts = facts.replace('state=down', '')
        if facts:
            yield f'kvroute_server {address} {facts};'
    if not servers:
        yield 'server 127.0.0.1:1 down;'


def location_lines(row):
    for option in row.get('options', '').split(' '):
        yield OPTIONS[option]
    for word in {word for c in row['calls'] for word in c.get('tell', ())}:
        yield TOLD[word]
    if any(c.get('cut') for c in row['calls']):
        yield f'kvroute_max_body {len(row["calls"][0]["body"]) - 1};'


def conf(folder, port, ports):
    print(f"log_format line '{LOG}';")
    for i, row in enumerate(rows()):
        for copy in range(copies_of(row)):
            name = f'line{i}-{copy}'
            print(f'upstream {name} {{ zone {name}-servers 64k;',
                  f'kvroute zone={name}:4m;',
                  *server_lines(row, ports), '}')
            print(f'server {{ listen 127.0.0.1:{port}; server_name {name};',
                  f'access_log {folder}/logs/lines line; location / {{',
                  f'kvroute_trace {folder}/logs/trace;',
                  f'proxy_pass http://{name}; proxy_http_version 1.1;',
                  'proxy_buffering off; proxy_next_upstream error timeout',
                  'http_503 non_idempotent;', *location_lines(row), '} }')


# ---------------------------------------------------------------------- run

def pieces_of(response):
    if 'hex' in response:
        return [bytes.fromhex(p) for p in response['hex']]
    return [p.encode() for p in response['pieces']]


def until(what, found):
    end = time.monotonic() + WAIT
    while not (value := found()):
        if time.monotonic() > end:
            sys.exit(f'{what}: it is waited for in vain')
        time.sleep(0.002)
    return value


def read_request(connection):
    with connection.makefile('rb') as f:
        f.readline()
        headers = {}
        while (line := f.readline().strip()):
            name, _, value = line.decode().partition(':')
            headers[name.lower()] = value.strip()
        return headers, f.read(int(headers.get('content-length', 0)))


class Run:
    def __init__(self, folder, port, ports):
        self.folder, self.port, self.ports = folder, port, ports
        self.names = {f'127.0.0.1:{p}': n for n, p in ports.items()}
        self.select = selectors.DefaultSelector()
        self.listeners, self.calls, self.here = {}, 0, ''
        for name in ports:
            self.listen(name)

    def is_equal(self, what, got, want):
        if got != want:
            print(f'{self.here}, {what}: {got!r} instead of {want!r}')

    # -------------------------------------------------------------- engines

    def listen(self, name):
        self.listeners[name] = socket.create_server(
            ('127.0.0.1', self.ports[name]))
        self.select.register(self.listeners[name], selectors.EVENT_READ)

    def refuse(self, name):
        self.select.unregister(self.listeners[name])
        self.listeners.pop(name).close()

    def answer(self, connection, want, fails):
        """Returns the request, or None if this server fails."""
        connection.settimeout(WAIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = read_request(connection)
        if fails:
            if fails.pop(0) == 'status':
                connection.sendall(FAILED)
            connection.close()
            return None
        response = want['response']
        coding = response.get('coding', '')
        coding = coding and f'Content-Encoding: {coding}\r\n'
        connection.sendall(
            f'HTTP/1.1 {response["status"]} So\r\nConnection: close\r\n'
            f'Content-Type: {response["type"]}\r\n{coding}'
            'Transfer-Encoding: chunked\r\n\r\n'.encode())
        for piece in pieces_of(response):
            connection.sendall(b'%x\r\n%s\r\n' % (len(piece), piece))
        end = want.get('end', 'whole')
        if end == 'whole':
            connection.sendall(b'0\r\n\r\n')
        if end != 'client_left':
            connection.close()
        return request

    # --------------------------------------------------------------- client

    def send(self, name, want, body):
        client = socket.create_connection(('127.0.0.1', self.port))
        method = want.get('method', 'POST')
        told = [(f'X-{k}', v) for k, v in want.get('tell', {}).items()]
        head = [('Host', name), ('X-Call', str(self.calls)),
                ('Accept-Encoding', 'gzip'),
                ('Content-Type', 'application/json'),
                *told, *want.get('headers', ())]
        if method == 'POST':
            head.append(('Content-Length', str(len(body))))
        client.sendall(
            f'{method} {want["path"]} HTTP/1.0\r\n'.encode() + b''.join(
                f'{k}: {v}\r\n'.encode() for k, v in head) + b'\r\n' + body)
        return client

    def exchange(self, client, want):
        """The request as the engine had it, and the bytes for the client."""
        fails = [f for f in want.get('fails', ()) if f != 'refused']
        left = want.get('end') == 'client_left'
        whole = b''.join(pieces_of(want['response'])) if left else None
        got, request, end = b'', None, time.monotonic() + WAIT
        self.select.register(client, selectors.EVENT_READ)
        while time.monotonic() < end:
            for key, _ in self.select.select(1):
                if key.fileobj is not client:
                    connection, _ = key.fileobj.accept()
                    request = self.answer(connection, want, fails)
                    continue
                got += (more := client.recv(65536))
                if not more or (left and got.endswith(whole)):
                    self.select.unregister(client)
                    client.close()
                    if left:
                        self.is_equal('engine is left', connection.recv(1),
                                      b'')
                        connection.close()
                    return request, got
        sys.exit(f'{self.here}: it does not end')

    # --------------------------------------------------------------- a call

    def status(self, name):
        with socket.create_connection(('127.0.0.1', self.port)) as s:
            s.sendall(b'GET /status?format=json HTTP/1.0\r\n'
                      b'Host: status\r\n\r\n')
            text = s.makefile('rb').read().partition(b'\r\n\r\n')[2]
        return next(u for u in json.loads(text)['upstreams']
                    if u['name'] == name)

    def lines(self, file):
        path = f'{self.folder}/logs/{file}'
        if not os.path.exists(path):
            return []
        with open(path) as f:
            return f.read().splitlines()

    def logged(self):
        start = f'{self.calls}\t'
        return until('the log', lambda: [
            line.split('\t') for line in self.lines('lines')
            if line.startswith(start)])[0]

    def look(self, want, log, picked):
        expect, address = want['expect'], log[-1]
        _, reason, model, overlap = log[:4]
        self.is_equal('reason', reason, expect['reason'])
        self.is_equal('model', model.replace('-', ''), expect['model'])
        if 'overlap' in expect:
            self.is_equal('overlap', overlap not in '-0',
                          bool(expect['overlap']))
        tried = [self.names[a] for a in address.split(', ')]
        self.is_equal('tries', len(tried), len(want.get('fails', ())) + 1)
        picked.append(tried[-1])
        self.is_equal('target', tried[-1], expect.get('target', tried[-1]))
        if 'same' in expect:
            self.is_equal('same', tried[-1], picked[expect['same']])

    def look_sent(self, want, body, request):
        headers, sent = request
        if 'salt' in want:
            self.is_equal('salt', json.loads(sent)['cache_salt'],
                          want['salt'])
        else:
            self.is_equal('sent', sent, want.get('sent', body.decode())
                          .encode())
        got = {n: headers[n] for n in ('accept-encoding',
                                       'x-data-parallel-rank')
               if headers.get(n, 'gzip') != 'gzip'}
        self.is_equal('set', got, {n: got.get(n, 'none') if v == '?' else v
                                   for n, v in want['set'].items()})

    def look_passed(self, want, got):
        head, _, passed = got.partition(b'\r\n\r\n')
        self.is_equal('status', int(head.split()[1]),
                      want['response']['status'])
        all_of_it = want['passed'].encode() if 'passed' in want \
            else b''.join(pieces_of(want['response']))
        if want.get('end') == 'engine_broke':
            all_of_it = all_of_it[:all_of_it.rindex(b'\n\n') + 2]
        self.is_equal('passed', passed, all_of_it)

    def look_report(self, want, log, traced):
        report = want['report']
        if 'started' in want:
            self.is_equal('started', log[5] != '-', bool(want['started']))
        self.is_equal('cached', log[4].replace('-', '0'),
                      str(report[1] if report else 0))
        lines = self.lines('trace')[traced:]
        if not lines:
            return  # the prompt is shorter than a block
        line = json.loads(lines[0])
        self.is_equal('is reported', 'prompt_tokens' in line,
                      report is not None)
        self.is_equal('report', [
            line.get('prompt_tokens', 0), line.get('cached_tokens', 0),
            line['output_length']], report or [0, 0, line['output_length']])

    def call(self, name, want, picked):
        """False: no server has refused it, as one must."""
        body = want.get('body', '').encode()
        endpoints = self.status(name)['endpoints']
        traced = len(self.lines('trace'))
        self.calls += 1
        client = self.send(name, want, body)
        request, got = self.exchange(client, want)
        if 'error' in want:
            self.is_equal('status', got.split()[1], b'502')
            self.is_equal('reached', request, None)
            return True
        log = self.logged()
        if 'refused' in want.get('fails', ()) and ', ' not in log[-1]:
            return False
        self.look(want, log, picked)
        self.look_sent(want, body, request)
        self.look_passed(want, got)
        self.look_report(want, log, traced)
        now = self.status(name)['endpoints']
        self.is_equal('endpoint', [e for e in now if now[e] > endpoints[e]],
                      [want['expect']['endpoint']])
        return True

    def line(self, name, row):
        refuses = copies_of(row) > 1
        if refuses:
            self.refuse('a:1')
        picked = []
        done = all([self.call(name, want, picked) for want in row['calls']])
        if refuses:
            self.listen('a:1')
        until('leases', lambda: self.status(name)['region']['leases'] == 0)
        return done

    def all(self):
        all_rows = rows()
        for i, row in enumerate(all_rows):
            self.here = row['name']
            if not any(self.line(f'line{i}-{copy}', row)
                       for copy in range(copies_of(row))):
                self.is_equal('refusals', 0, 1)
        self.here = 'all'
        self.is_equal('40 lines or more', len(all_rows) >= 40, True)


def main():
    what, folder, port = sys.argv[1:4]
    ports = {f'{name}:1': int(p) for name, p in zip('abc', sys.argv[4:])}
    if what == 'conf':
        conf(folder, port, ports)
        print(f'server {{ listen 127.0.0.1:{port}; server_name status;',
              'location = /status { kvroute_status; } }')
    else:
        Run(folder, int(port), ports).all()


main()
