#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""demo.py BUILD ENVOY SCRATCH - Envoy, kvroute-pick and three stand-in engines:
prints the engine that each turn of some chats went to."""
import os
import shutil
import sys

from bed import Bed
from envoy import go_on, user, words

CHATS, TURNS, WORDS = 6, 4, 700


def names_of(bed):
    return {str(port): 'ABC'[i] for i, port in enumerate(bed.engines)}


def turn(bed, chats, names):
    """A turn of each chat, as ENGINE:CACHED%."""
    for i, messages in enumerate(chats):
        answer = bed.chat(messages)
        if answer.status != 200:
            yield '%d' % answer.status
            continue
        yield '%s: %3d %%' % (names[answer.server], 100 * answer.cached //
            answer.usage['prompt_tokens'])
        go_on(messages, answer, 'go on')


def row(name, cells):
    print(('  %-18s' % name + ''.join('%-11s' % c for c in cells)).rstrip(),
        flush=True)


def chats_and_a_death(bed):
    names = names_of(bed)
    chats = [[user('chat %d: %s' % (i, words(WORDS, i)))]
        for i in range(CHATS)]
    print('Engines:', ', '.join('%s at 127.0.0.1:%s' % (n, port)
        for port, n in names.items()))
    print('Chats through Envoy at 127.0.0.1:%d: the engine of each turn, and '
        'the part\nof the prompt that it had cached.\n' % bed.port)
    row('', ('chat %d' % (i + 1) for i in range(CHATS)))
    for number in range(1, TURNS + 1):
        row('turn %d' % number, turn(bed, chats, names))
    print('\nEngine A is killed (-9).')
    bed.kill_engine(bed.engines[0])
    for number in range(TURNS + 1, TURNS + 3):
        row('turn %d' % number, turn(bed, chats, names))
    ended = bed.status()['pick']['ended']
    print('\nCalls by their ends, as kvroute-pick counts them:', ', '.join(
        '%s %d' % pair for pair in ended.items() if pair[1]))


def roles(bed):
    names = names_of(bed)
    print('\nA and B decode, C prefills: x-prefiller-host-port as it comes to '
        'A and B.')
    with bed.echoing(bed.engines[:2]):
        for name, text in ('a long prompt', words(WORDS, 99)), (
                'the same again', words(WORDS, 99)), ('a short prompt', 'hi'):
            answer = bed.chat([user(text)])
            row(name, [names.get(answer.text.rsplit(':', 1)[-1], 'none')])


def main():
    build, envoy, scratch = sys.argv[1:]
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    with Bed(os.path.abspath(build), envoy, scratch, scale='0.01') as bed:
        chats_and_a_death(bed)
    with Bed(os.path.abspath(build), envoy, scratch, scale='0.01',
            roles=('decode', 'decode', 'prefill')) as bed:
        roles(bed)


if __name__ == '__main__':
    main()
