# SPDX-License-Identifier: BSD-2-Clause
"""gateways.py - the gateways, each with the settings that its own pages give
for engines with prefix caches, and where these are from."""
import collections
import os
import re
import subprocess

import bed
import install
import model
from install import Absent

README = os.path.join(os.path.dirname(install.HERE), '..', 'README.md')
READY = 120     # seconds
HELLO = (b'{"model":"kvroute","max_tokens":1,"messages":'
         b'[{"role":"user","content":"hello"}]}')

# settings: the part of the configuration that routes; events: engines publish
# theirs; session: it routes by a header that only some users send.
Rival = collections.namedtuple(
    'Rival', 'name program settings source events session',
    defaults=(False, False))
# Its workers are Python here, and its frontend tokenizes.
SLOW_PROGRAM = 'dynamo'

LINES = 'the lines of README.md'
RIVALS = [
    Rival('kvroute', 'nginx', 'kvroute', LINES),
    Rival('kvroute-auto', 'nginx', 'kvroute-auto', LINES +
          ', and capacity=auto for each server'),
    Rival('least_conn', 'nginx', 'least_conn;',
          'ngx_http_upstream_module'),
    Rival('hash', 'nginx', 'hash $beginning consistent;',
          'ngx_http_upstream_module; of the first 4,096 bytes of the body'),
    Rival('session', 'nginx', 'hash $http_x_session_id consistent;',
          'ngx_http_upstream_module', session=True),
    Rival('sticky', 'nginx', 'least_conn; sticky learn zone=sessions:1m '
          'create=$http_x_session_id lookup=$http_x_session_id;',
          'ngx_http_upstream_module', session=True),
    Rival('smg', 'smg', '--policy cache_aware', '`smg launch --help`'),
    Rival('smg-no-veto', 'smg', '--policy cache_aware '
          '--disable-worker-overload-protection',
          '`smg launch --help`; the same without the veto by load'),
    Rival('sglang-router', 'sglang-router', '--policy cache_aware',
          'its README'),
    Rival('sglang-nodelay', 'sglang-router', '--policy cache_aware',
          'its README; TCP_NODELAY forced by nodelay.c'),
    Rival('vllm-router', 'vllm-router', '--policy cache_aware',
          '`vllm-router --help`; it has the engines tokenize'),
    Rival('vllm-sticky', 'vllm-router', '--policy consistent_hash',
          'its README, with X-Session-Id', session=True),
    Rival('dynamo', 'dynamo', '--router-mode kv --no-router-kv-events',
          'its README, without events'),
    Rival('dynamo-events', 'dynamo', '--router-mode kv --router-kv-events',
          'its README, with events', events=True),
]
BY_NAME = {rival.name: rival for rival in RIVALS}


def readme_lines():
    with open(README) as file:
        part = re.search(r'^\*\*nginx\*\*.*?^\*\*C\*\*', file.read(),
                         re.M | re.S)[0]
    return ''.join(line[4:] + '\n' for line in part.splitlines()
                   if line.startswith('    '))


def shown_settings(rival):
    """Those of kvroute are in README.md."""
    if not rival.settings.startswith('kvroute'):
        return rival.settings
    found = re.search(r'kvroute zone=[^;]*;', readme_lines())[0]
    auto = rival.settings.endswith('-auto')
    return found + ' kvroute_server ... capacity=auto;' * auto


# ------------------------------------------------------------------- nginx

def nginx_program(build, settings):
    """The system's, or NGINX_BIN; sticky is only in newer ones."""
    newer = os.path.join(build, 'nginx-newer', 'nginx')
    if 'sticky' in settings and os.path.exists(newer):
        return newer
    return os.environ.get('NGINX_BIN', 'nginx')


def upstream(settings, ports):
    servers = ''.join('server 127.0.0.1:%d; ' % port for port in ports)
    text = re.search(r'^upstream.*?^ +keepalive[^}]*}', readme_lines(),
                     re.M | re.S)[0]
    text = re.sub(r'server 10\.0\.0\.1:.*', lambda _: servers, text)
    if settings == 'kvroute-auto':
        facts = ''.join('kvroute_server 127.0.0.1:%d capacity=auto; ' % port
                        for port in ports)
        text = text.replace(servers, servers + facts)
    if not settings.startswith('kvroute'):
        text = re.sub(r'kvroute zone=[^;]*;', lambda _: settings, text)
    return text


def nginx_conf(work, build, settings, port, ports):
    lines = readme_lines()
    kvroute = settings.startswith('kvroute')
    places = lines[lines.index('location'):]
    if not kvroute:
        places = re.sub(r'^location /kvroute .*', '', places, flags=re.M)
    load = '' if not kvroute else (
        'load_module %s/nginx/ngx_http_upstream_kvroute_module.so;' % build)
    temps = ' '.join('%s_temp_path %s/%s;' % (temp, work, temp) for temp in
                     ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
    user = 'user root root;' if os.getuid() == 0 else ''
    return f'''{load}
worker_processes 2; pid {work}/pid; error_log {work}/error notice; {user}
events {{ worker_connections 4096; }}
http {{
{temps} access_log off;
map $request_body $beginning {{ "~^(?<b>[\\s\\S]{{1,4096}})" $b; default ""; }}
{upstream(settings, ports)}
server {{
listen 127.0.0.1:{port}; keepalive_requests 1000000;
client_max_body_size 64m; client_body_buffer_size 1m;
{places}
}}
}}
'''


def start_nginx(place, rival, port, engines):
    work = os.path.join(place.work, 'nginx-%d' % port)
    os.makedirs(work)
    conf = os.path.join(work, 'conf')
    with open(conf, 'w') as file:
        file.write(nginx_conf(work, place.build, rival.settings, port,
                              engines.ports))
    command = [nginx_program(place.build, rival.settings), '-p', work, '-e',
               os.path.join(work, 'error'), '-c', conf]
    test = subprocess.run([*command, '-t'], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if test.returncode:
        raise Absent('this nginx refuses its directive: ' +
                     re.sub(r' in .*', '', test.stdout.splitlines()[0]))
    return [bed.Process([*command, '-g', 'daemon off;'], place.log(rival),
                        place.gateway_cores)]


# ---------------------------------------------------------------- from PyPI

def start_router(place, rival, port, engines):
    programs = install.install(place.build, rival.program)
    command = {
        'smg': [programs + '/smg', 'launch'],
        'sglang-router': [programs + '/python', '-m',
                          'sglang_router.launch_router'],
        'vllm-router': [programs + '/vllm-router']}[rival.program]
    environment = {'LD_PRELOAD': os.path.join(place.build, 'nodelay.so')} \
        if rival.name == 'sglang-nodelay' else {}
    urls = ['http://127.0.0.1:%d' % p for p in engines.ports]
    return [bed.Process(
        [*command, '--host', '127.0.0.1', '--port', port,
         '--prometheus-port', bed.free_port(), *rival.settings.split(),
         '--worker-urls', *urls], place.log(rival), place.gateway_cores,
        **environment)]


def dynamo_environment(folder):
    local = dict.fromkeys(
        ('DYN_TCP_RPC_HOST', 'DYN_TCP_RESPONSE_STREAM_HOST',
         'DYN_EVENT_PLANE_HOST', 'DYN_SYSTEM_HOST'), '127.0.0.1')
    return dict(local, DYN_FILE_KV=folder, DYN_LOG='warn', HF_HUB_OFFLINE='1')


def start_dynamo(place, rival, port, engines):
    """The frontend, then a worker for each engine."""
    programs = install.install(place.build, 'dynamo')
    folder = os.path.join(place.work, 'dynamo-%d' % port)
    environment = dynamo_environment(folder)
    path = model.make(place.build, programs + '/python')
    workers = []
    for i, one in enumerate(engines.ports):
        events = ['--events', engines.endpoint(i)] if rival.events else []
        workers.append(bed.Process(
            [programs + '/python', install.HERE + '/standin.py', '--url',
             'http://127.0.0.1:%d' % one, '--model', path, '--blocks',
             place.blocks, *events], place.log(rival) + '-worker%d' % i,
            place.other_cores, **environment))
    frontend = bed.Process(
        [programs + '/python', '-m', 'dynamo.frontend', '--http-host',
         '127.0.0.1', '--http-port', port, '--discovery-backend', 'file',
         '--request-plane', 'tcp', '--event-plane', 'zmq',
         *rival.settings.split()], place.log(rival), place.gateway_cores,
        **environment)
    return [frontend, *workers]


STARTS = {'nginx': start_nginx, 'dynamo': start_dynamo}


class Gateway:
    """One that runs; the first of its processes is what is measured."""

    def __init__(self, place, rival, engines):
        self.rival, self.engines, self.place = rival, engines, place
        self.port = bed.free_port()
        start = STARTS.get(rival.program, start_router)
        self.processes = start(place, rival, self.port, engines)

    def answers(self):
        if not all(process.is_alive() for process in self.processes):
            return True
        return bed.request(self.port, 'POST', '/v1/chat/completions',
                           HELLO)[0] == 200

    def instances(self):
        """Dynamo's frontend has a worker before it has all."""
        text = bed.request(self.port, 'GET', '/health')[1]
        return text.count(b'"instance_id"') >= len(self.engines.ports)

    def __enter__(self):
        try:
            ready = bed.until(self.answers, READY) and (
                len(self.processes) == 1 or
                bed.until(self.instances, READY))
            for process in self.processes:
                if not ready or not process.is_alive():
                    raise Absent('it does not start: ' + process.last_lines())
        except BaseException:
            self.__exit__()
            raise
        return self

    def usage(self):
        return self.processes[0].usage()

    def __exit__(self, *_):
        for process in self.processes:
            process.stop()


def nginx_version(build, settings):
    text = subprocess.run([nginx_program(build, settings), '-v'],
                          stderr=subprocess.PIPE, text=True).stderr
    return text.strip().rpartition('/')[2]


def version(build, rival):
    if rival.program == 'nginx':
        return nginx_version(build, rival.settings)
    return install.version(rival.program)
