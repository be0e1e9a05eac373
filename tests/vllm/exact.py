# SPDX-License-Identifier: BSD-2-Clause
"""exact.py - engines whose events kvroute-events gives to a region: each block
is known, so a prediction is exact. The requests go through the example gateway,
whose prompts are tokens; bytes would make predictions estimates again."""
import contextlib
import json
import os
import random

import ask
import bed
import cases
from cases import case

REQUESTS = 240
POOLS, PIECES, PIECE = 12, 8, 100   # of prompts that share their beginnings
ENDS = 60, 400


@contextlib.contextmanager
def known_blocks(engines, replay=True, name='exact'):
    region = bed.new_region(name)
    with bed.Gateway(engines, region) as gateway, \
            bed.Daemon(engines, region, replay) as daemon:
        daemon.settle()
        yield gateway, daemon


def prompts(seed, n):
    """Beginnings of a few long lists of tokens, with ends of their own."""
    draw = random.Random(seed)
    pools = [[draw.randrange(10, 1900) for _ in range(PIECES * PIECE)]
             for _ in range(POOLS)]
    for _ in range(n):
        yield draw.choice(pools)[:PIECE * draw.randint(1, PIECES)] + [
            draw.randrange(10, 1900) for _ in range(draw.randint(*ENDS))]


def ask_tokens(gateway, prompt, tokens=8):
    """(predicted, cached)"""
    answer = ask.good(gateway.port, ask.COMPLETIONS, ask.completion(
        prompt, tokens, ignore_eos=True, temperature=0))
    return int(answer.headers['X-Predicted']), answer.usage[1] or 0


def differences(gateway, daemon, asked):
    """Those of cached and predicted tokens, and the sum of the cached."""
    found, cached = [], 0
    for prompt in asked:
        pair = ask_tokens(gateway, prompt)
        found.append(pair[1] - pair[0])
        cached += pair[1]
        daemon.settle()
    return found, cached


@case
def events_of_blocks_that_are_evicted(fleet):
    """The prediction of each request is what the engine reports."""
    engines = fleet[:2]
    with known_blocks(engines) as (gateway, daemon):
        for engine in engines:
            engine.reset()
        found, cached = differences(gateway, daemon, prompts(1, REQUESTS))
        removed, lost = daemon.sum('blocks_removed'), daemon.sum('lost')
        assert daemon.states() == ['complete'] * len(engines), \
            daemon.workers()
    wrong = [d for d in found if d != 0]
    assert not wrong and lost == 0, (wrong, lost)
    assert removed > 1000 and cached > 0, (removed, cached)
    return '%d requests, %d tokens cached, %d blocks evicted: all equal' % (
        len(found), cached, removed)


def chats_whose_answers_come_back(engine):
    """(predicted, cached) of each turn."""
    with known_blocks([engine]) as (gateway, daemon):
        draw, found = random.Random(2), []
        for chat in range(6):
            prompt = [draw.randrange(10, 1900) for _ in range(90)]
            for _ in range(4):
                answer = ask.good(gateway.port, ask.COMPLETIONS,
                                  ask.completion(prompt, 70, temperature=0,
                                                 ignore_eos=True,
                                                 return_token_ids=True))
                found.append((int(answer.headers['X-Predicted']),
                              answer.usage[1] or 0))
                prompt += answer.data['choices'][0]['token_ids'] + [
                    draw.randrange(10, 1900) for _ in range(20)]
                daemon.settle()
    return found


@case
def events_with_answers_that_come_back(fleet):
    """Turns of chats: the blocks of answers are published, too."""
    found = chats_whose_answers_come_back(fleet[0])
    assert all(predicted == cached for predicted, cached in found), found
    return '%d of %d tokens' % tuple(map(sum, zip(*found)))


@case
def events_at_the_bounds_of_blocks(fleet):
    """An engine never takes the last token of a prompt from its cache."""
    with known_blocks(fleet[:1]) as (gateway, daemon):
        fleet[0].reset()
        for n in (31, 32, 33, 63, 64, 65, 96, 100, 320):
            prompt = [(7 * i + n) % 1800 + 20 for i in range(n)]
            found, _ = differences(gateway, daemon, [prompt, prompt])
            assert found[1] == 0, (n, found)


@case(known=11, reason='kvr_match counts whole blocks of the index, and knows '
      'neither the blocks of the engine nor its rule of the last token')
def overlaps_that_kvr_match_returns(fleet):
    with known_blocks(fleet[:1]) as (gateway, daemon):
        found = []
        for n in (33, 64, 100, 320):
            prompt = [(5 * i + n) % 1800 + 20 for i in range(n)]
            for _ in range(2):
                answer = ask.good(gateway.port, ask.COMPLETIONS,
                                  ask.completion(prompt, 4))
                daemon.settle()
            overlap = (answer.headers['X-Overlap'] or '=0').split('=')[-1]
            found.append((int(overlap), answer.usage[1] or 0))
    cases.demand(all(a == b for a, b in found), 'overlaps ' + ', '.join(
        '%d of %d' % pair for pair in found))


@case
def a_gap_with_a_replay(fleet):
    """Requests that came while the daemon did not run are known after it."""
    engines = fleet[:1]
    region = bed.new_region('gap')
    with bed.Gateway(engines, region) as gateway:
        daemon = bed.Daemon(engines, region)
        with daemon:
            differences(gateway, daemon, prompts(3, 10))
        for prompt in prompts(3, 20):
            ask_tokens(gateway, prompt)
        with daemon:
            daemon.settle()
            assert daemon.states() == ['complete'], daemon.workers()
            found, cached = differences(gateway, daemon, prompts(3, 20))
            assert set(found) == {0} and daemon.sum('lost') == 0, found
    return '%d tokens cached, all predicted' % cached


@case
def a_gap_without_a_replay(fleet):
    """The worker is degraded; after a reset of its cache it is complete."""
    engines = fleet[:1]
    engines[0].reset()
    region = bed.new_region('lossy')
    with bed.Gateway(engines, region) as gateway:
        daemon = bed.Daemon(engines, region, replay=False)
        with daemon:
            ask_tokens(gateway, next(prompts(4, 1)))
            daemon.settle()
        for prompt in prompts(4, 20):
            ask_tokens(gateway, prompt)
        with daemon:
            ask_tokens(gateway, [11] * 40)
            daemon.settle()
            assert daemon.states() == ['degraded'], daemon.workers()
            found, _ = differences(gateway, daemon, prompts(4, 20))
            assert min(found) >= 0, found
            engines[0].reset()
            ask_tokens(gateway, [12] * 40)
            daemon.settle()
            assert daemon.states() == ['complete'], daemon.workers()
            found, cached = differences(gateway, daemon, prompts(4, 20))
            assert set(found) == {0}, found
    return '%d tokens cached, all predicted' % cached


@case
def a_prefix_cache_that_is_reset(fleet):
    """vLLM publishes that with its next step, so one request is predicted as
    before, and those after it as it is."""
    with known_blocks(fleet[:1]) as (gateway, daemon):
        long_one = next(prompts(5, 1)) * 2
        differences(gateway, daemon, [long_one, long_one])
        fleet[0].reset()
        daemon.settle()
        first, second = ask_tokens(gateway, long_one), None
        daemon.settle()
        second = ask_tokens(gateway, long_one)
        assert first[1] == 0 and second[0] == second[1] > 0, (first, second)
        cleared = daemon.sum('cleared')
        assert cleared > 0, daemon.workers()
    return 'the first request predicted %d of %d, the next %d of %d' % (
        *first, *second)


@case
def a_configuration_that_is_checked(fleet):
    region = bed.new_region('checked')
    daemon = bed.Daemon(fleet, region)
    conf = os.path.join(bed.work, 'checked.json')
    with open(conf, 'w') as file:
        json.dump({'workers': [daemon.entry(e) for e in fleet]}, file)
    with bed.Gateway(fleet, region):
        said = cases.output('kvroute-events', '-c', conf, '--check', region)
    assert said.count('connected, replays') == len(fleet), said
