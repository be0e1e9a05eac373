# SPDX-License-Identifier: BSD-2-Clause
"""pages.py - predictions beside what SGLang finds in its radix cache, request by
request, as in tests/vllm/exact.py. Where a page is smaller than a block of the
index, a prediction counts whole blocks."""
import json

import api
import ask
import bed
import cases
import exact
from cases import case

BLOCK = 16        # of the gateway's index
REQUESTS = 80
TURNOVER = 10000  # tokens that are evicted, at least


def wrong(engine, differences):
    """Lists all that are not 0, or less than a block of smaller pages."""
    return [d for d in differences
            if not 0 <= d < (BLOCK if engine.page < BLOCK else 1)]


def of_each(fleet, check):
    """A sentence of the results, with the size of pages of each engine."""
    return '; '.join('pages of %d: %s' % (engine.page, check(engine))
                     for engine in fleet)


def check_evictions(engine):
    with exact.known_blocks([engine]) as (gateway, daemon):
        engine.reset()
        daemon.settle()
        found, cached = exact.differences(
            gateway, daemon, exact.prompts(engine.page, REQUESTS))
        removed, lost = daemon.sum('blocks_removed'), daemon.sum('lost')
        assert daemon.states() == ['complete'], daemon.workers()
    assert not wrong(engine, found) and lost == 0, (
        wrong(engine, found), lost)
    # Pages that are smaller than a block of the index count by its blocks.
    evicted = removed * max(engine.page, BLOCK)
    assert evicted > TURNOVER and cached > 0, (evicted, cached)
    return '%d requests, %d tokens cached, %d of them predicted, ' \
        '%d evicted' % (len(found), cached, cached - sum(found), evicted)


@case
def events_of_pages_that_are_evicted(fleet):
    """The prediction of each request is what the engine reports."""
    return of_each(fleet, check_evictions)


@case
def events_of_several_engines(fleet):
    """Each with pages of another size."""
    with exact.known_blocks(fleet) as (gateway, daemon):
        for engine in fleet:
            engine.reset()
        daemon.settle()
        found, cached = exact.differences(gateway, daemon,
                                          exact.prompts(9, REQUESTS))
        assert daemon.states() == ['complete'] * 3, daemon.workers()
    assert all(0 <= d < BLOCK for d in found) and cached > 0, found
    return '%d tokens cached, %d of them predicted' % (
        cached, cached - sum(found))


def check_answers(engine):
    found = exact.chats_whose_answers_come_back(engine)
    assert not wrong(engine, [cached - predicted
                              for predicted, cached in found]), found
    return '%d of %d tokens' % tuple(map(sum, zip(*found)))


@case
def events_with_answers_that_come_back(fleet):
    return of_each(fleet, check_answers)


def check_bounds(engine):
    with exact.known_blocks([engine]) as (gateway, daemon):
        engine.reset()
        daemon.settle()
        for n in (15, 16, 17, 63, 64, 65, 128, 320):
            prompt = [(7 * i + n) % 1800 + 20 for i in range(n)]
            found, _ = exact.differences(gateway, daemon, [prompt, prompt])
            assert not wrong(engine, found), (n, found)
    return 'as reported'


@case
def events_at_the_bounds_of_pages(fleet):
    """The last token of a prompt is never taken from the cache."""
    return of_each(fleet, check_bounds)


def check_gap(engine):
    """Requests that came while the daemon did not run are known after it."""
    region = bed.new_region('gap')
    with bed.Gateway([engine], region) as gateway:
        daemon = bed.Daemon([engine], region)
        with daemon:
            exact.differences(gateway, daemon, exact.prompts(3, 10))
        for prompt in exact.prompts(3, 20):
            exact.ask_tokens(gateway, prompt)
        with daemon:
            daemon.settle()
            assert daemon.states() == ['complete'], daemon.workers()
            found, cached = exact.differences(gateway, daemon,
                                              exact.prompts(3, 20))
            assert daemon.sum('lost') == 0 and cached > 0, daemon.workers()
    cases.demand(not wrong(engine, found), 'too little is predicted: %s' %
                 wrong(engine, found))
    return '%d tokens cached' % cached


@case
def a_gap_with_a_replay(fleet):
    return of_each([e for e in fleet if e.page >= BLOCK], check_gap)


@case(known=2, reason='kvroute-events forgets pages of blocks that are not '
      'whole when it ends, so blocks behind them are unknown')
def a_gap_with_a_replay_of_small_pages(fleet):
    return of_each([e for e in fleet if e.page < BLOCK], check_gap)


@case
def a_gap_without_a_replay(fleet):
    """The worker is degraded; when its cache is flushed it is complete."""
    engine = fleet[0]
    with exact.known_blocks([engine], replay=False) as (gateway, daemon):
        exact.ask_tokens(gateway, next(exact.prompts(4, 1)))
        bed.until(lambda: daemon.states() == ['degraded'], 10, 'degraded')
        engine.reset()
        bed.until(lambda: daemon.states() == ['complete'], 10, 'complete')
        found, _ = exact.differences(gateway, daemon, exact.prompts(4, 20))
        assert not wrong(engine, found), found


@case
def a_cache_that_is_flushed(fleet):
    """SGLang publishes it at once: the next request is predicted as it is."""
    engine = fleet[0]
    with exact.known_blocks([engine]) as (gateway, daemon):
        prompt = next(exact.prompts(5, 1)) * 2
        exact.differences(gateway, daemon, [prompt, prompt])
        before = daemon.sum('cleared')
        engine.reset()
        bed.until(lambda: daemon.sum('cleared') > before, 10, 'cleared')
        first = exact.ask_tokens(gateway, prompt)
        daemon.settle()
        second = exact.ask_tokens(gateway, prompt)
    assert first == (0, 0) and second[0] == second[1] > 0, (first, second)


@case
def salts_have_pages_of_their_own(fleet):
    """Pages of a salt are not predicted for prompts without one."""
    engine = fleet[0]
    with exact.known_blocks([engine]) as (gateway, daemon):
        engine.reset()
        prompt = next(exact.prompts(6, 1))
        for salt in 'a', 'b':
            ask.good(engine.port, ask.COMPLETIONS,
                     ask.completion(prompt, cache_salt=salt))
        daemon.settle()
        found = exact.ask_tokens(gateway, prompt)
        daemon.settle()
        again = exact.ask_tokens(gateway, prompt)
    assert found == (0, 0) and again[0] == again[1] > 0, (found, again)


@case(known=1, reason='an extra_key that a client sends is not in the hashes '
      'that SGLang publishes, and its events do not name it')
def extra_keys_have_pages_of_their_own(fleet):
    engine = fleet[0]
    with exact.known_blocks([engine]) as (gateway, daemon):
        engine.reset()
        prompt = next(exact.prompts(7, 1))
        ask.good(engine.port, ask.COMPLETIONS,
                 ask.completion(prompt, extra_key='a'))
        daemon.settle()
        found = exact.ask_tokens(gateway, prompt)
    cases.demand(found == (0, 0), 'predicted %d of %d' % found)


class Asking(bed.Daemon):
    def entry(self, engine):
        return {'worker': engine.address, 'engine': engine.kind,
                'server': 'http://' + engine.address}


@case
def an_endpoint_that_is_asked_for(fleet):
    """With a server's address alone kvroute-events finds its events, and gets
    all since its start by their replay."""
    engine = fleet[0]
    region = bed.new_region('asked')
    with bed.Gateway([engine], region) as gateway, \
            Asking([engine], region) as daemon:
        bed.until(lambda: daemon.states() == ['complete'], 20, 'complete')
        found, cached = exact.differences(gateway, daemon,
                                          exact.prompts(8, 20))
    assert not wrong(engine, found) and cached > 0, found


@case
def tools(fleet):
    """With a tool_choice of none SGLang does not render them."""
    api.check_tools(fleet[:1], 'auto')


@case
def prompts_that_are_too_long(fleet):
    """SGLang answers for any name of a model, so that is no refusal."""
    api.check_refusals(fleet[:1], [api.too_long()])


@case
def probe(fleet):
    """kvroute-probe prints the capacity and the page of an engine."""
    for engine in fleet:
        one = json.loads(cases.output('kvroute-probe', '--format', 'json',
                                      engine.address))[0]
        assert one['engine'] == 'SGLang' and \
            one['capacity'] == engine.tokens and \
            one['block_tokens'] == engine.page, one
