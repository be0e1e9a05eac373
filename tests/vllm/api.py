# SPDX-License-Identifier: BSD-2-Clause
"""api.py - endpoints and kinds of requests, through nginx to engines whose
capacity it reads. A case asks, asks the same again, and compares the share of
the prompt that kvroute predicted with the share that the engine reported."""
import contextlib
import http.client
import json
import signal
import time

import ask
import bed
import cases
from cases import case

OPTIONS = dict(facts='capacity=auto', location='kvroute_include_usage on;')
NEAR = 0.1    # shares: of prompts of some 500 tokens in blocks of 32
TOOLS = [dict(type='function', function=dict(
    name='look', description='looks', parameters=dict(
        type='object', properties={})))]


@contextlib.contextmanager
def proxy(fleet, **options):
    for engine in fleet:
        engine.reset()
    with bed.Nginx(fleet, **{**OPTIONS, **options}) as nginx:
        nginx.until_capacities(fleet[0].tokens)
        yield nginx


def shares(nginx, answer):
    """(predicted, reported) for a request, of its prompt."""
    line = nginx.line(answer.name)
    prompt, cached = answer.usage or (None, None)
    blocks = int(line['kvroute_blocks'])
    if cached is not None:
        is_silent = cached == 0 and not nginx.engines[0].reports_zero
        assert line['kvroute_cached'] == str(cached) or is_silent and \
            line['kvroute_cached'] == '-', (line, cached)
    elif line['kvroute_cached'] != '-':
        cached = int(line['kvroute_cached'])
    return (int(line['kvroute_overlap']) / blocks if blocks else 0.0,
            cached / prompt if prompt and cached is not None else cached)


def ask_twice(nginx, path, body, again=None):
    """The first time nothing may be predicted and found, then nearly all."""
    first = ask.good(nginx.port, path, body)
    second = ask.good(nginx.port, path, again or body)
    before, after = shares(nginx, first), shares(nginx, second)
    assert before[0] < NEAR and before[1] < NEAR, ('first', before)
    assert after[0] > 0.8 and abs(after[0] - after[1]) < NEAR, ('then', after)
    lines = [nginx.line(a.name) for a in (first, second)]
    assert lines[0]['upstream_addr'] == lines[1]['upstream_addr'], lines
    return 'predicted %.2f, reported %.2f' % after


ENDPOINTS = [(ask.CHAT, ask.chat), (ask.COMPLETIONS, ask.completion),
             (ask.RESPONSES, ask.response), (ask.MESSAGES, ask.message)]


@case
def every_endpoint_plain(fleet):
    with proxy(fleet) as nginx:
        return '; '.join(
            path[4:] + ': ' + ask_twice(nginx, path, make(ask.text(path)))
            for path, make in ENDPOINTS)


@case
def every_endpoint_streamed(fleet):
    said = []
    with proxy(fleet) as nginx:
        for path, make in ENDPOINTS:
            body = make(ask.text('stream' + path), stream=True)
            if path in (ask.CHAT, ask.COMPLETIONS):
                body['stream_options'] = {'include_usage': True}
            said.append(path[4:] + ': ' + ask_twice(nginx, path, body))
    return '; '.join(said)


@case
def streams_whose_clients_ask_for_no_usage(fleet):
    """nginx asks the engine for it, and takes it out of the answer."""
    with proxy(fleet) as nginx:
        for path, make in ENDPOINTS[:2]:
            body = make(ask.text('unasked' + path), stream=True)
            first, second = (ask.good(nginx.port, path, body)
                             for _ in range(2))
            assert first.usage is None and second.usage is None
            assert all(data['choices'] for data in second.data)
            assert 'data: [DONE]' in second.body
            assert int(nginx.line(second.name)['kvroute_cached']) > 300


@case
def prompts_of_tokens(fleet):
    with proxy(fleet) as nginx:
        return ask_twice(nginx, ask.COMPLETIONS,
                         ask.completion(list(range(10, 700))))


def check_tools(fleet, choice):
    with proxy(fleet) as nginx:
        body = ask.chat(ask.text('tools'), tools=TOOLS, tool_choice=choice)
        ask_twice(nginx, ask.CHAT, body)
        # Tools stand before all messages: others share nothing.
        del body['tools'], body['tool_choice']
        other = ask.good(nginx.port, ask.CHAT, body)
        predicted, cached = shares(nginx, other)
        assert predicted < NEAR and cached < NEAR, (predicted, cached)


@case
def tools(fleet):
    check_tools(fleet, 'none')


def apart(found):
    """Two prompts share nothing, and each is there when it comes again."""
    for predicted, cached in found[:2]:
        assert predicted < NEAR and cached < NEAR, found
    for predicted, cached in found[2:]:
        assert predicted > 0.8 and cached > 0.8, found


@case
def salts_separate_prompts(fleet):
    with proxy(fleet) as nginx:
        asked = {salt: ask.chat(ask.text('salt'), cache_salt=salt)
                 for salt in ('one', 'two')}
        found = [shares(nginx, ask.good(nginx.port, ask.CHAT, asked[salt]))
                 for salt in ('one', 'two', 'one', 'two')]
    apart(found)


@case
def salts_that_nginx_sets(fleet):
    with proxy(fleet, location='kvroute_salt $http_x_tenant;') as nginx:
        body = ask.chat(ask.text('tenant'), cache_salt='of the client')
        found = [shares(nginx, ask.good(
            nginx.port, ask.CHAT, body, headers={'X-Tenant': tenant}))
            for tenant in ('mars', 'moon', 'mars', 'moon')]
    apart(found)


@case
def two_answers_to_a_prompt(fleet):
    with proxy(fleet) as nginx:
        body = ask.chat(ask.text('two answers'), n=2)
        first = ask.good(nginx.port, ask.CHAT, body)
        assert len(first.data['choices']) == 2
        again = ask.good(nginx.port, ask.CHAT, dict(body, n=1))
        predicted, cached = shares(nginx, again)
        assert predicted > 0.8 and cached > 0.8, (predicted, cached)


@case
def log_probabilities(fleet):
    with proxy(fleet) as nginx:
        body = ask.chat(ask.text('logprobs'), logprobs=True, top_logprobs=2)
        said = ask_twice(nginx, ask.CHAT, body)
        # Those of a prompt prevent hits: no report is evidence against it.
        prompt = ask.completion(ask.text('prompt logprobs'))
        ask.good(nginx.port, ask.COMPLETIONS, prompt)
        whole = ask.good(nginx.port, ask.COMPLETIONS,
                         dict(prompt, prompt_logprobs=1))
        assert (whole.usage[1] or 0) == 0, whole.usage
        after = ask.good(nginx.port, ask.COMPLETIONS, prompt)
        predicted, cached = shares(nginx, after)
        assert predicted > 0.8 and cached > 0.8, (predicted, cached)
    return said


@case
def a_list_of_prompts(fleet):
    with proxy(fleet) as nginx:
        two = [ask.text('list one'), ask.text('list two')]
        first = ask.good(nginx.port, ask.COMPLETIONS, ask.completion(two))
        assert len(first.data['choices']) == 2
        again = ask.good(nginx.port, ask.COMPLETIONS,
                         ask.completion(two[0]))
        predicted, cached = shares(nginx, again)
        assert predicted > 0.8 and cached > 0.8, (predicted, cached)


def explained(nginx, path, body):
    return ask.good(nginx.port, '/kvroute/explain?uri=' + path,
                    body).data['decision']


def check_refusals(fleet, asked):
    """Bodies and the statuses of their answers."""
    with proxy(fleet) as nginx:
        for body, status in asked:
            answer = ask.send(nginx.port, ask.CHAT, body)
            assert answer.status == status, answer.body[:200]
            decision = explained(nginx, ask.CHAT, body)
            assert decision['overlap_blocks'] == 0, decision
        bed.until(lambda: idle(nginx), 5, 'nothing is booked')


def too_long():
    return ask.chat('word ' * 40000), 400


@case
def refused_prompts_are_not_recorded(fleet):
    """One that is too long, and one for a model that is not there."""
    check_refusals(fleet, [too_long(), (dict(
        ask.chat(ask.text('no such model')), model='none'), 404)])


def idle(nginx):
    return all(worker['requests'] == 0 for worker in
               nginx.status()['workers'])


@case
def clients_that_leave(fleet):
    """The engine stops, the booking ends, and the prompt counts."""
    with proxy(fleet) as nginx:
        body = ask.chat(ask.text('abort'), tokens=4000, stream=True,
                        ignore_eos=True)
        connection = http.client.HTTPConnection('127.0.0.1', nginx.port)
        connection.request('POST', ask.CHAT, json.dumps(body), {
            'Content-Type': 'application/json'})
        connection.getresponse().read(500)
        assert not idle(nginx)
        connection.sock.close()
        connection.close()
        bed.until(lambda: idle(nginx), 5, 'nothing is booked')
        bed.until(lambda: all(e.is_idle() for e in fleet), 10,
                  'the engines are idle')
        again = ask.good(nginx.port, ask.CHAT, dict(
            body, max_tokens=4, stream=False))
        predicted, cached = shares(nginx, again)
        assert predicted > 0.8 and cached > 0.8, (predicted, cached)


@case
def responses_by_id(fleet):
    """An engine has its own: each request that names one goes there."""
    used = set()
    with proxy(fleet) as nginx:
        for i in range(6):
            # Instructions are those of one request: the next has others.
            first = ask.good(nginx.port, ask.RESPONSES, dict(
                model=bed.MODEL, input=ask.text('by id %d' % i), store=True,
                max_output_tokens=8))
            name = first.data['id']
            used.add(nginx.line(first.name)['upstream_addr'])
            after = ask.good(nginx.port, ask.RESPONSES, dict(
                model=bed.MODEL, input='more', store=True,
                max_output_tokens=8, previous_response_id=name))
            assert after.usage[1] > 200, after.usage
            got = ask.good(nginx.port, ask.RESPONSES + '/' + name)
            assert got.data['id'] == name
    assert len(used) > 1, used


def across(nginx, seed, before, after):
    """(predicted, reported) if a prompt comes by another endpoint."""
    text = ask.text('across %s' % seed)
    ask.good(nginx.port, before[0], before[1](text))
    return shares(nginx, ask.good(nginx.port, after[0], after[1](text)))


@case(known=10, reason='the system prompt of an endpoint is another text for '
      'kvroute, though the engine renders one template')
def a_system_prompt_by_another_endpoint(fleet):
    chat, _, response, message = ENDPOINTS
    with proxy(fleet[:1]) as nginx:
        found = [across(nginx, i, *pair) for i, pair in enumerate((
            (chat, response), (response, chat), (chat, message),
            (message, response)))]
    said = ', '.join('%.2f of %.2f' % pair for pair in found)
    for predicted, cached in found:
        cases.demand(abs(predicted - cached) < NEAR, 'predicted ' + said)
    return said


@case
def probe(fleet):
    """kvroute-probe prints the capacity and the block of an engine."""
    for engine in fleet:
        found = cases.output('kvroute-probe', '--format', 'json',
                           engine.address)
        one = json.loads(found)[0]
        assert one['engine'] == 'vLLM' and one['capacity'] == engine.tokens \
            and one['block_tokens'] == bed.BLOCK, one
    return '%d tokens in blocks of %d' % (fleet[0].tokens, bed.BLOCK)


def after_five_seconds(fleet, timeout):
    """The status of a request that nginx reads at a time when vLLM has closed
    the connection and nginx has not noticed: it is stopped meanwhile."""
    body = json.dumps(ask.completion([20] * 40, tokens=1))
    with proxy(fleet[:1], keepalive_timeout=timeout) as nginx:
        client = http.client.HTTPConnection('127.0.0.1', nginx.port)
        for stopped in False, True:
            if stopped:
                time.sleep(4.5)
                nginx.kill(signal.SIGSTOP)
            client.request('POST', ask.COMPLETIONS, body,
                           {'Content-Type': 'application/json'})
            if stopped:
                time.sleep(1)
                nginx.kill(signal.SIGCONT)
            answer = client.getresponse()
            answer.read()
        client.close()
    return answer.status


@case
def an_idle_connection_that_nginx_closes_first(fleet):
    """With keepalive_timeout 4s."""
    status = after_five_seconds(fleet, '4s')
    assert status == 200, status


@case(known=1, reason='vLLM closes idle connections after 5 s, nginx after '
      '60 s, and a POST is not sent again: set keepalive_timeout 4s')
def an_idle_connection_that_the_engine_closes_first(fleet):
    status = after_five_seconds(fleet, None)
    cases.demand(status == 200, 'status %d' % status)
