# SPDX-License-Identifier: BSD-2-Clause
"""ask.py - requests, answers and their usage; texts for prompts."""
import concurrent.futures
import http.client
import itertools
import json
import random
import re

import bed

numbers = itertools.count(1)
words = []

CHAT, COMPLETIONS = '/v1/chat/completions', '/v1/completions'
RESPONSES, MESSAGES = '/v1/responses', '/v1/messages'


def learn_words(files):
    for name in files:
        with open(name) as file:
            words.extend(re.findall(r'[A-Za-z]{2,9}', file.read()))


def text(seed, n=350):
    """The same n words for the same seed."""
    draw = random.Random(str(seed))
    return ' '.join(draw.choice(words) for _ in range(n))


class Answer:
    """`data` is the answer's JSON, or that of each event of a stream."""

    def __init__(self, response, name):
        self.name, self.status = name, response.status
        self.headers = response.headers
        self.is_stream = (response.headers['content-type'] or '').startswith(
            'text/event-stream')
        body = response.read().decode()
        self.body = body
        self.data = None
        if self.is_stream:
            self.data = [json.loads(line[6:]) for line in body.splitlines()
                         if line.startswith('data: {')]
        elif body.startswith(('{', '[')):
            self.data = json.loads(body)

    @property
    def usage(self):
        """(tokens of the prompt, those cached); None: there is no usage."""
        found = None
        for data in self.data if self.is_stream else [self.data]:
            for part in (data, data.get('response'), data.get('message')):
                if part and part.get('usage'):
                    found = add_usage(found, part['usage'])
        return found


def add_usage(before, usage):
    if 'prompt_tokens' in usage:
        details = usage.get('prompt_tokens_details') or {}
        return usage['prompt_tokens'], details.get('cached_tokens')
    if 'input_tokens_details' in usage:
        return (usage['input_tokens'],
                usage['input_tokens_details']['cached_tokens'])
    # Anthropic's, whose later events may have the output alone.
    if not usage.get('input_tokens') and before:
        return before
    cached = usage.get('cache_read_input_tokens') or 0
    return (usage['input_tokens'] + cached
            + (usage.get('cache_creation_input_tokens') or 0), cached)


def send(port, path, body=None, method=None, headers=None, seconds=120):
    name = 'r%d' % next(numbers)
    connection = http.client.HTTPConnection('127.0.0.1', port,
                                            timeout=seconds)
    try:
        connection.request(
            method or ('POST' if body is not None else 'GET'), path,
            None if body is None else json.dumps(body),
            {'Content-Type': 'application/json', 'X-Id': name,
             **(headers or {})})
        return Answer(connection.getresponse(), name)
    finally:
        connection.close()


def good(*args, **options):
    answer = send(*args, **options)
    assert answer.status == 200, (answer.status, answer.body[:200])
    return answer


# ------------------------------------------------------------------ bodies

def chat(system, user='what now', tokens=8, **more):
    return dict(model=bed.MODEL, max_tokens=tokens, messages=[
        dict(role='system', content=system),
        dict(role='user', content=user)], **more)


def completion(prompt, tokens=8, **more):
    return dict(model=bed.MODEL, max_tokens=tokens, prompt=prompt, **more)


def response(system, user='what now', tokens=8, **more):
    return dict(model=bed.MODEL, max_output_tokens=tokens,
                instructions=system, input=user, **more)


def message(system, user='what now', tokens=8, **more):
    return dict(model=bed.MODEL, max_tokens=tokens, system=system,
                messages=[dict(role='user', content=user)], **more)


# ------------------------------------------------------------------- chats

class Session:
    """A chat: each turn has the answers before it."""

    def __init__(self, number, system, words_each=45):
        self.draw = random.Random(number)
        self.name = 's%d' % number
        self.words_each = words_each
        self.messages = [dict(role='system', content=system)]

    def turn(self, port, tokens=48):
        n = self.draw.randint(self.words_each // 2, self.words_each * 3 // 2)
        self.messages.append(dict(role='user', content=' '.join(
            self.draw.choice(words) for _ in range(n))))
        answer = good(port, CHAT, dict(
            model=bed.MODEL, messages=self.messages, max_tokens=tokens,
            ignore_eos=True, stream=True,
            stream_options={'include_usage': True}),
            headers={'X-Session-Id': self.name})
        self.messages.append(dict(role='assistant', content=''.join(
            choice['delta'].get('content') or ''
            for data in answer.data for choice in data['choices'])))
        return answer


def talk(port, sessions, turns, parallel=6, seed=1, systems=4, **options):
    """Sessions take their turns in a ring, some at a time."""
    chats = [Session(1000 * seed + i, text('%d-%d' % (seed, i % systems), 430))
             for i in range(sessions)]
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        for _ in range(turns):
            answers = list(pool.map(lambda c: c.turn(port, **options), chats))
    return answers
