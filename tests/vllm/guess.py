# SPDX-License-Identifier: BSD-2-Clause
"""guess.py - chats through nginx to three engines with caches that are too small
for all: predictions by capacity, by reports and by time, and by events, beside
the shares that the engines report. Each way has a bound for its error."""
import contextlib
import random
import time

import ask
import bed
from cases import case

SESSIONS, TURNS = 36, 4
POINTS = 0.01


@contextlib.contextmanager
def chats(fleet, options, facts='', region=None):
    """Runs them; gives nginx behind them."""
    for engine in fleet:
        engine.reset()
    with contextlib.ExitStack() as stack:
        nginx = stack.enter_context(bed.Nginx(
            fleet, options, facts, 'kvroute_include_usage on;'))
        if facts:
            nginx.until_capacities(fleet[0].tokens)
        if region:
            daemon = stack.enter_context(bed.Daemon(fleet, region))
            pass_the_reset(fleet, daemon)
        ask.talk(nginx.port, SESSIONS, TURNS)
        yield nginx


def pass_the_reset(fleet, daemon):
    """Engines publish it with their next step, and nginx looks the workers up
    within a second."""
    for engine in fleet:
        for rank in range(engine.ranks):
            ask.good(engine.port, ask.COMPLETIONS, ask.completion([9] * 40),
                     headers={'X-Data-Parallel-Rank': str(rank)})
    time.sleep(1)
    daemon.settle()
    time.sleep(2)


def figures(nginx):
    usage = nginx.status()['usage']
    prompt = usage['prompt_tokens']
    assert usage['value'] == SESSIONS * TURNS, usage
    return usage['predicted_tokens'] / prompt, usage['cached_tokens'] / prompt


def within(nginx, points):
    predicted, reported = figures(nginx)
    said = 'predicted %.3f, reported %.3f' % (predicted, reported)
    cases.demand(abs(predicted - reported) <= points * POINTS,
                 '%s, reasons %s' % (said, reasons(nginx)))
    return said


def reasons(nginx):
    return {name: n for name, n in nginx.status()['reasons'].items() if n}


@case
def capacity_that_is_read(fleet):
    with chats(fleet, 'zone=kv:8m', 'capacity=auto') as nginx:
        return within(nginx, 4)


@case(known=9, reason='feedback begins with 5/6 for each block')
def feedback(fleet):
    with chats(fleet, 'zone=kv:8m') as nginx:
        return within(nginx, 3)


@case
def events_and_bytes(fleet):
    region = bed.new_region('bytes')
    with chats(fleet, 'path=%s size=8m' % region, region=region) as nginx:
        return within(nginx, 6)


@case(known=8, reason='a capacity counts 4 bytes for each token, whatever the '
      'reports show')
def text_of_many_tokens(fleet):
    """Digits: some 1.3 bytes for each token."""
    engine = fleet[0]
    engine.reset()
    with bed.Nginx(fleet[:1], 'zone=kv:8m', 'capacity=auto') as nginx:
        nginx.until_capacities(engine.tokens)
        texts = []
        for i in range(22):
            draw = random.Random(i)
            texts.append(' '.join(str(draw.randrange(10 ** 6))
                                  for _ in range(150)))
        before, rounds = None, []
        for _ in range(4):
            for text in texts:
                ask.good(nginx.port, ask.CHAT, ask.chat(text, tokens=2))
            before, usage = usage_of(before, nginx)
            rounds.append(usage)
    said = ', '.join('predicted %.2f of %.2f' % usage for usage in rounds)
    cases.demand(all(abs(a - b) < 0.1 for a, b in rounds), said)
    return said


def usage_of(before, nginx):
    """The shares since `before`."""
    now = nginx.status()['usage']
    change = {key: now[key] - (before[key] if before else 0) for key in
              ('prompt_tokens', 'predicted_tokens', 'cached_tokens')}
    return now, (change['predicted_tokens'] / change['prompt_tokens'],
                 change['cached_tokens'] / change['prompt_tokens'])
