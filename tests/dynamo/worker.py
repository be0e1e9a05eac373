# SPDX-License-Identifier: BSD-2-Clause
"""worker.py BLOCK [events] - a worker of Dynamo's without an engine.

It registers itself, prints its id, and publishes the events of its cache that
come as lines of JSON on standard input, until this ends.
"""
import asyncio
import json
import sys

from dynamo.llm import (KvEventPublisher, ModelInput, ModelRuntimeConfig,
                        ModelType, register_model)
from dynamo._core import WorkerType
from dynamo.runtime import DistributedRuntime

ENDPOINT = 'dynamo.backend.generate'


async def answer_nothing(_request):
    yield {}


def facts(events):
    config = ModelRuntimeConfig()
    config.total_kv_blocks = 1000000
    config.max_num_seqs = 256
    config.max_num_batched_tokens = 2048
    config.context_length = 1000000
    config.enable_local_indexer = False
    config.kv_event_publishing_enabled = events
    return config


def publish(publisher, event):
    if 'removed' in event:
        publisher.publish_removed(event['removed'])
    else:
        publisher.publish_stored(event['tokens'], event['sizes'],
                                 event['stored'], event['parent'],
                                 lora_name=event['adapter'],
                                 cache_salt=event['salt'])


async def follow(publisher):
    loop = asyncio.get_running_loop()
    while True:
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if not line:
            return
        publish(publisher, json.loads(line))


async def main(block, events):
    runtime = DistributedRuntime(asyncio.get_running_loop(), 'file', 'tcp')
    endpoint = runtime.endpoint(ENDPOINT)
    await register_model(
        ModelInput.Tokens, ModelType.Completions, endpoint, 'none', 'none',
        worker_type=WorkerType.Aggregated, kv_cache_block_size=block,
        runtime_config=facts(events), skip_model_assets=True)
    publisher = KvEventPublisher(endpoint, kv_block_size=block) if events \
        else None
    serving = asyncio.ensure_future(endpoint.serve_endpoint(answer_nothing))
    print(endpoint.connection_id(), flush=True)
    await follow(publisher)
    runtime.shutdown()
    await asyncio.wait([serving], timeout=5)


if __name__ == '__main__':
    asyncio.run(main(int(sys.argv[1]), sys.argv[2:] == ['events']))
