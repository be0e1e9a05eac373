# SPDX-License-Identifier: BSD-2-Clause
"""standin.py --url URL --model FOLDER --blocks N [--events ENDPOINT] - a worker
of Dynamo's whose engine is a kvroute-engine. Prompts go on as tokens, so that
the events of the engine are about the tokens that Dynamo routes by."""
import argparse
import json
import os

import aiohttp
from dynamo.common.backend.engine import (EngineConfig, LLMEngine,
                                          LlmRegistration)
from dynamo.common.backend.publisher import ZmqSource
from dynamo.common.backend.run import run
from dynamo.common.backend.worker import WorkerConfig
from tokenizers import Tokenizer

LENGTH = 1000000    # tokens of a prompt


def options(argv):
    parser = argparse.ArgumentParser()
    for name in ('--url', '--model', '--events'):
        parser.add_argument(name)
    parser.add_argument('--blocks', type=int)
    return parser.parse_args(argv)


def asked(request):
    """The body for the engine."""
    body = {'model': 'kvroute', 'prompt': request['token_ids'],
            'stream': True, 'stream_options': {'include_usage': True}}
    most = (request.get('stop_conditions') or {}).get('max_tokens')
    # The frontend fills the rest of the length in where none was asked.
    if most and most < LENGTH // 10:
        body['max_tokens'] = most
    return body


class StandIn(LLMEngine):
    def __init__(self, arguments):
        self.arguments, self.http = arguments, None
        self.tokenizer = Tokenizer.from_file(
            os.path.join(arguments.model, 'tokenizer.json'))

    @classmethod
    async def from_args(cls, argv=None):
        arguments = options(argv)
        return cls(arguments), WorkerConfig(
            namespace='dynamo', component='backend', endpoint='generate',
            model_name=arguments.model, served_model_name='kvroute',
            discovery_backend='file', request_plane='tcp', event_plane='zmq',
            endpoint_types='chat,completions',
            use_kv_events=bool(arguments.events))

    async def start(self, _worker_id):
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=600))
        return EngineConfig(
            model=self.arguments.model, served_model_name='kvroute',
            llm=LlmRegistration(
                context_length=LENGTH, kv_cache_block_size=16,
                total_kv_blocks=self.arguments.blocks, max_num_seqs=256,
                max_num_batched_tokens=2048))

    async def kv_event_sources(self):
        return [ZmqSource(endpoint=self.arguments.events)] \
            if self.arguments.events else []

    async def generate(self, request, context):
        last = {'token_ids': [], 'index': 0, 'finish_reason': 'stop'}
        async for event in self.events(asked(request)):
            if event.get('usage'):
                last['completion_usage'] = event['usage']
            for choice in event.get('choices', []):
                if choice.get('text'):
                    yield {'token_ids': self.tokenizer.encode(
                        choice['text']).ids, 'index': 0}
                if choice.get('finish_reason'):
                    last['finish_reason'] = choice['finish_reason']
        yield last

    async def events(self, body):
        async with self.http.post(self.arguments.url + '/v1/completions',
                                  json=body) as answer:
            if answer.status != 200:
                raise RuntimeError('engine: %d' % answer.status)
            async for line in answer.content:
                if line.startswith(b'data: {'):
                    yield json.loads(line[6:])

    async def abort(self, context):
        pass

    async def cleanup(self):
        await self.http.close()


if __name__ == '__main__':
    run(StandIn)
