# SPDX-License-Identifier: BSD-2-Clause
"""ranks.py - one engine with two data-parallel ranks."""
import json

import ask
import bed
import cases
import guess
from cases import case


@case
def ranks_keep_their_prompts(engine):
    """Each session stays at a rank, by the header that nginx sends."""
    with bed.Nginx([engine], 'zone=kv:8m block=64', 'ranks=2 capacity=auto',
                   'kvroute_include_usage on;') as nginx:
        ask.talk(nginx.port, 6, 4, parallel=2, systems=6)
        ranks = {line['kvroute_rank'] for line in nginx.lines()}
        usage = nginx.status()['usage']
        predicted, cached, prompt = (usage[name + '_tokens'] for name in (
            'predicted', 'cached', 'prompt'))
    said = 'predicted %.3f, reported %.3f' % (predicted / prompt,
                                              cached / prompt)
    assert ranks == {'0', '1'}, ranks
    assert cached > 0.6 * prompt and \
        abs(predicted - cached) < 0.05 * prompt, said
    return said


@case
def events_of_ranks(engine):
    engine.reset()
    region = bed.new_region('ranks')
    with bed.Nginx([engine], 'path=%s size=8m block=64' % region, 'ranks=2',
                   'kvroute_include_usage on;') as nginx, \
            bed.Daemon([engine], region) as daemon:
        guess.pass_the_reset([engine], daemon)
        ask.talk(nginx.port, 6, 3, parallel=2, seed=2, systems=6)
        daemon.settle()
        assert daemon.states() == ['complete'] * 2, daemon.workers()
        assert all(worker['blocks_stored'] > 0 for worker in daemon.workers())
        lines, usage = nginx.lines(), nginx.status()['usage']
    # In tokens each block would count for 5/6: known fault 9.
    predicted, blocks = (sum(int(line['kvroute_' + name]) for line in lines)
                         for name in ('overlap', 'blocks'))
    predicted, cached = (predicted / blocks,
                         usage['cached_tokens'] / usage['prompt_tokens'])
    said = 'predicted %.3f of the blocks, %.3f of the tokens, reported %.3f' \
        % (predicted, usage['predicted_tokens'] / usage['prompt_tokens'],
           cached)
    assert abs(predicted - cached) < 0.06, said
    return said


def probed(engine, rank):
    return json.loads(cases.output(
        'kvroute-probe', '--format', 'json', '--rank', str(rank),
        engine.address))[0]


@case
def capacity_of_a_rank(engine):
    """vLLM's num_gpu_blocks is that of both ranks."""
    found = [probed(engine, rank) for rank in (0, 1)]
    assert [one['capacity'] for one in found] == [engine.tokens] * 2, found
    assert [one['block_tokens'] for one in found] == [bed.BLOCK] * 2, found
