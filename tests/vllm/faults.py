# SPDX-License-Identifier: BSD-2-Clause
"""faults.py - engines and kvroute-events that die or lose what they had, behind
nginx with a region that both have."""
import contextlib
import signal
import threading
import time

import ask
import bed
import exact
import guess
from cases import case

LOCATION = '''kvroute_include_usage on;
proxy_next_upstream error timeout http_503 non_idempotent;'''


@contextlib.contextmanager
def followed(engines, name):
    region = bed.new_region(name)
    for engine in engines:
        engine.reset()
    with bed.Nginx(engines, 'path=%s size=8m block=64' % region,
                   location=LOCATION) as nginx, \
            bed.Daemon(engines, region) as daemon:
        daemon.settle()
        yield nginx, daemon


def systems(name, n):
    return [ask.chat(ask.text('%s %d' % (name, i), 200), tokens=2)
            for i in range(n)]


@case(known=2, reason='a reset gives a worker a new id, which nginx looks up '
      'each second')
def requests_while_a_cache_is_reset(fleet):
    """Two sessions go on; none may fall back."""
    with followed(fleet[:2], 'reset') as (nginx, _):
        body = systems('reset', 2)
        for i in range(70):
            ask.good(nginx.port, ask.CHAT, body[i % 2])
            if i == 20:
                fleet[0].reset()
                fleet[1].reset()
            time.sleep(0.03)
        found = guess.reasons(nginx)
        cases.demand(found.get('no_worker', 0) == 0, found)


@case
def an_engine_that_is_killed(fleet):
    """No request fails but those that it had, and it comes back."""
    engine = fleet[0]
    with followed(fleet[:2], 'kill') as (nginx, daemon):
        statuses, ends = [], threading.Event()

        def user(number):
            body = systems('kill %d' % number, 3)
            while not ends.is_set():
                statuses.append(ask.send(
                    nginx.port, ask.CHAT,
                    body[len(statuses) % 3]).status)
        users = [threading.Thread(target=user, args=(i,)) for i in range(2)]
        for one in users:
            one.start()
        time.sleep(2)
        engine.stop(signal.SIGKILL)
        time.sleep(3)
        engine.start()
        engine.wait()
        time.sleep(2)
        ends.set()
        for one in users:
            one.join()
        failed = [status for status in statuses if status != 200]
        assert len(failed) <= 2 and len(statuses) > 20, (failed, statuses)
        # Its first batch begins its stream anew.
        ask.good(engine.port, ask.COMPLETIONS, ask.completion([9] * 40))
        bed.until(lambda: daemon.sum('restarts') == 1, 10, 'a restart')
        daemon.settle()
        assert daemon.states() == ['complete'] * 2, daemon.workers()
        return '%d of %d requests failed' % (len(failed), len(statuses))


@case
def a_daemon_that_is_killed(fleet):
    """Later prompts are known by other means."""
    with followed(fleet[:2], 'dead') as (nginx, daemon):
        for body in systems('before', 4):
            ask.good(nginx.port, ask.CHAT, body)
        daemon.settle()
        daemon.stop(signal.SIGKILL)
        time.sleep(4)
        later = systems('after', 10)
        for body in later:
            ask.good(nginx.port, ask.CHAT, body)
        predicted = cached = 0
        for body in later:
            answer = ask.good(nginx.port, ask.CHAT, body)
            cached += answer.usage[1]
            line = nginx.line(answer.name)
            predicted += int(line['kvroute_overlap']) / int(
                line['kvroute_blocks']) * answer.usage[0]
    said = 'predicted %d of %d cached tokens' % (predicted, cached)
    assert predicted > 0.8 * cached, said
    return said


@case(known=4, reason='a worker of KVR_RETAIN_EVENTS stays as its events left '
      'it when kvroute-events dies')
def a_daemon_of_known_blocks_that_is_killed(fleet):
    with exact.known_blocks(fleet[:1]) as (gateway, daemon):
        exact.differences(gateway, daemon, exact.prompts(6, 5))
        daemon.stop(signal.SIGKILL)
        time.sleep(4)
        later = list(exact.prompts(7, 10))
        for prompt in later:
            exact.ask_tokens(gateway, prompt)
        predicted, cached = (sum(column) for column in zip(*(
            exact.ask_tokens(gateway, prompt) for prompt in later)))
    said = 'predicted %d of %d cached tokens' % (predicted, cached)
    assert predicted > 0.8 * cached, said
    return said
