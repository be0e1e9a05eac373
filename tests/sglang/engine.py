# SPDX-License-Identifier: BSD-2-Clause
"""engine.py - SGLang as a process of tests/vllm/bed.py, with events and their
replay. Its block is a page; it has the same tokens for all sizes of them."""
import json
import os

import bed

here = os.path.dirname(os.path.abspath(__file__))
TOKENS = 12800


class Engine(bed.Engine):
    kind = 'sglang'
    reports_zero = False   # it leaves them out of answers to /v1/messages

    def __init__(self, page):
        super().__init__(TOKENS // page)
        self.name, self.page = 'sglang%d' % page, page

    @property
    def tokens(self):
        return TOKENS

    def start(self):
        events = {'publisher': 'zmq',
                  'endpoint': self.events.replace('127.0.0.1', '*'),
                  'replay_endpoint': self.replay.replace('127.0.0.1', '*')}
        self.spawn(
            bed.python, '-m', 'sglang.launch_server',
            '--model-path', os.path.join(bed.work, 'model'),
            '--served-model-name', bed.MODEL, '--host', '127.0.0.1',
            '--port', self.port, '--dtype', 'bfloat16', '--device', 'cpu',
            '--attention-backend', 'torch_native',
            '--cuda-graph-backend-decode', 'disabled',
            '--cuda-graph-backend-prefill', 'disabled',
            '--enable-cache-report', '--kv-events-config', json.dumps(events),
            '--page-size', self.page, '--max-total-tokens', TOKENS,
            '--max-running-requests', 8, '--chunked-prefill-size', 2048,
            '--skip-server-warmup',
            SGLANG_USE_CPU_ENGINE='1', OMP_NUM_THREADS='1',
            PYTHONPATH=os.path.join(here, 'shim'), HF_HUB_OFFLINE='1')

    def reset(self):
        """Empties its cache, which it refuses while a request ends."""
        bed.until(lambda: bed.get(self.port, '/flush_cache', 'POST')[0] == 200,
                  30, self.name + ' empties its cache')

    def is_idle(self):
        loads = json.loads(bed.get(self.port, '/v1/loads')[1])['loads']
        return all(load['num_running_reqs'] == 0 for load in loads)
