# SPDX-License-Identifier: BSD-2-Clause
"""bed.py - processes of a run, their ports, CPU time and memory."""
import atexit
import http.client
import os
import signal
import socket
import subprocess
import time

LIFE = 1800         # seconds; no process is older
TICKS = os.sysconf('SC_CLK_TCK')
running = []


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as one:
        return one.getsockname()[1]


def free_ports(n):
    taken = [socket.create_server(('127.0.0.1', 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def request(port, method, path, body=None, seconds=5):
    """Status and bytes, or None and nothing."""
    connection = http.client.HTTPConnection('127.0.0.1', port,
                                            timeout=seconds)
    try:
        connection.request(method, path, body,
                           {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None, b''
    finally:
        connection.close()


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(.1)
    return True


def fields(pid):
    """Those of /proc/PID/stat behind the name."""
    with open('/proc/%d/stat' % pid) as file:
        return file.read().rsplit(') ', 1)[1].split()


def family(pid):
    """The process and all below it."""
    children = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            children.setdefault(int(fields(int(name))[1]), []).append(
                int(name))
        except OSError:
            continue
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        left += children.get(one, [])
    return found


def resident(pid):
    with open('/proc/%d/status' % pid) as file:
        return sum(int(line.split()[1]) for line in file
                   if line.startswith('VmRSS'))


class Process:
    """A program in a session of its own, with a log; it ends with the run."""

    def __init__(self, command, log, cores=None, **environment):
        self.command, self.cores = [str(word) for word in command], cores
        self.log, self.environment = log, environment
        self.start()

    def start(self):
        pinned = ['taskset', '-c', self.cores] if self.cores else []
        with open(self.log, 'ab') as log:
            self.child = subprocess.Popen(
                ['timeout', '-k', '5', str(LIFE), *pinned, *self.command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment})
        running.append(self)

    def is_alive(self):
        return self.child.poll() is None

    def usage(self):
        """Seconds of CPU and KB of memory, with all children."""
        seconds = memory = 0
        for pid in family(self.child.pid):
            try:
                stat = fields(pid)
                memory += resident(pid)
            except OSError:
                continue
            seconds += sum(map(int, stat[11:15])) / TICKS
        return seconds, memory

    def stop(self):
        if self not in running:
            return
        running.remove(self)
        for pid in reversed(family(self.child.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.child.wait()

    def last_lines(self, n=8):
        with open(self.log, errors='replace') as log:
            return ''.join(log.readlines()[-n:])


def stop_all():
    for process in list(running):
        process.stop()


atexit.register(stop_all)


class Engines:
    """Stand-ins, a process each, so that all hash alike and one can die."""

    def __init__(self, build, logs, n, options, events=False):
        self.ports = free_ports(n)
        self.publishers = free_ports(n) if events else []
        self.all = []
        for i, port in enumerate(self.ports):
            more = ['--events', self.endpoint(i)] if events else []
            self.all.append(Process(
                [os.path.join(build, 'kvroute-engine'), '--engines', 1,
                 '--port', port, '--model', 'kvroute', '--for', LIFE,
                 *options.split(), *more], os.path.join(logs, 'engines')))

    def endpoint(self, i):
        return 'tcp://127.0.0.1:%d' % self.publishers[i]

    def __enter__(self):
        if not until(lambda: all(request(port, 'GET', '/health')[0] == 200
                                 for port in self.ports), 20):
            raise RuntimeError('engines do not start')
        return self

    def __exit__(self, *_):
        for engine in self.all:
            engine.stop()

    def cpu(self):
        return sum(engine.usage()[0] for engine in self.all
                   if engine.is_alive())
