# SPDX-License-Identifier: BSD-2-Clause
"""parity.py MIRROR KIND BLOCK SEED REQUESTS - Dynamo's KvRouter and the library
with one random sequence of requests, compared at each of them.

KIND is approximate, events, leave or expire. The workers have no engines; their
caches are modelled here, and so the overlaps by events are known a third time.
Exits with 1 if anything differs.
"""
import asyncio
import collections
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from worker import ENDPOINT

WORKERS = 4
ACTIVE_MAX = 40     # requests at a time
PROMPT_MAX = 8000   # tokens
# Compared too; their numbers follow from the others.
UNSAID = ('numbers of hashes', 'sets of workers', 'ends of the mirror', 'zeros',
          'own choices')
WAIT = 30           # seconds until an event has arrived
TTL = {'expire': 4.0}
HERE = os.path.dirname(os.path.abspath(__file__))

Prompt = collections.namedtuple('Prompt', 'tokens adapter salt')


class Mirror:
    """The library, in a process that reads commands."""

    def __init__(self, program, block, ttl, events):
        self.child = subprocess.Popen(
            [program, str(WORKERS), str(block), str(int(ttl * 1000)),
             *(['events'] if events else [])], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def do(self, *words):
        self.child.stdin.write(' '.join(map(str, words)) + '\n')

    def flush(self):
        self.child.stdin.flush()

    def ask(self, word):
        self.do(word)
        self.flush()
        line = self.child.stdout.readline()
        if not line:
            sys.exit('the mirror has ended')
        return line.split()

    def prompt(self, prompt):
        self.scope(prompt)
        self.do('prompt', len(prompt.tokens), *prompt.tokens)

    def scope(self, prompt):
        self.do('scope', prompt.adapter or '-', prompt.salt or '-')

    def hashes(self):
        return [int(word) for word in self.ask('hashes')]

    def workers(self):
        """The one that it chooses, and facts by number of the worker."""
        words = self.ask('workers')
        rows = [words[i:i + 7] for i in range(1, len(words), 7)]
        return int(words[0]), {
            int(row[0]): (*map(int, row[1:6]), float(row[6])) for row in rows}

    def close(self):
        self.child.stdin.close()
        return self.child.wait(30)


class Cache:
    """Blocks of a worker, by name; each knows how many follow it."""

    def __init__(self):
        self.parents, self.followers, self.pins = {}, {}, {}

    def names(self, prompt, block):
        name, names = 0, []
        for i in range(len(prompt.tokens) // block):
            text = repr((name, prompt.adapter, prompt.salt,
                         prompt.tokens[i * block:(i + 1) * block]))
            digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
            name = int.from_bytes(digest, 'big') >> 1 | 1
            names.append(name)
        return names

    def held(self, names):
        return next((i for i, name in enumerate(names)
                     if name not in self.parents), len(names))

    def store(self, names):
        """Returns the place of the first that is new."""
        first = self.held(names)
        for i in range(first, len(names)):
            parent = names[i - 1] if i > 0 else 0
            self.parents[names[i]] = parent
            self.followers[names[i]] = 0
            if parent:
                self.followers[parent] += 1
        return first

    def pin(self, names, n):
        for name in names:
            self.pins[name] = self.pins.get(name, 0) + n

    def evict(self, names, n):
        """Up to n from the end, as long as nothing needs them."""
        gone = []
        for name in reversed(names[:self.held(names)]):
            if len(gone) == n or self.followers[name] or self.pins.get(name):
                break
            parent = self.parents.pop(name)
            del self.followers[name]
            if parent:
                self.followers[parent] -= 1
            gone.append(name)
        return gone


class Worker:
    """A process that registers itself with Dynamo."""

    def __init__(self, block, events):
        self.cache, self.seq = Cache(), 0
        self.child = subprocess.Popen(
            [sys.executable, os.path.join(HERE, 'worker.py'), str(block),
             *(['events'] if events else [])], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.id = None

    async def begin(self):
        line = await asyncio.to_thread(self.child.stdout.readline)
        if not line:
            sys.exit('a worker does not start')
        self.id = int(line)

    def publish(self, event):
        self.child.stdin.write(json.dumps(event) + '\n')
        self.child.stdin.flush()

    def next(self):
        """The number of its next batch."""
        self.seq += 1
        return self.seq - 1

    def leave(self):
        self.child.stdin.close()
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def stored_event(prompt, names, first, block):
    """Blocks from the first on."""
    return {'stored': names[first:],
            'parent': names[first - 1] if first else None,
            'tokens': prompt.tokens[first * block:len(names) * block],
            'sizes': [block] * (len(names) - first),
            'adapter': prompt.adapter, 'salt': prompt.salt}


class Counts:
    """How often each kind of figure was compared, and differed."""

    def __init__(self):
        self.compared = collections.Counter()
        self.different = collections.Counter()
        self.first = []

    def equal(self, kind, dynamo, ours, where):
        self.compared[kind] += 1
        if dynamo != ours:
            self.different[kind] += 1
            self.first.append('request %s: %s: Dynamo %s, kvroute %s' % (
                where, kind, dynamo, ours))

    def __str__(self):
        return ', '.join('%d %s' % (n, kind)
                         for kind, n in self.compared.items()
                         if kind not in UNSAID)


class Texts:
    """Prompts that continue, cut and repeat others."""
    ADAPTERS, SALTS = [None, None, 'style'], [None, None, 'mars', 'moon']

    def __init__(self, draw):
        self.draw, self.past = draw, []
        self.roots = [self.root() for _ in range(12)]

    def tokens(self, n):
        return [self.draw.randrange(1 << 32) for _ in range(n)]

    def root(self):
        return Prompt(self.tokens(self.draw.randrange(16, 1500)),
                      self.draw.choice(self.ADAPTERS),
                      self.draw.choice(self.SALTS))

    def next(self):
        old = self.past if self.past and self.draw.random() < .6 else \
            self.roots
        old = self.draw.choice(old)
        end = self.draw.randrange(1, len(old.tokens) + 1) \
            if self.draw.random() < .3 else len(old.tokens)
        tokens = old.tokens[:end] + self.tokens(self.draw.randrange(600))
        new = old._replace(tokens=tokens[:PROMPT_MAX])
        self.past = self.past[-59:] + [new]
        return new


class Router:
    """Dynamo's, with the workers of this run."""

    def __init__(self, block, ttl, events):
        self.block, self.ttl, self.events = block, ttl, events
        self.workers = []
        self.router = None

    async def begin(self):
        from dynamo.llm import KvRouter, KvRouterConfig
        from dynamo.runtime import DistributedRuntime
        self.workers = [self.new_worker() for _ in range(WORKERS)]
        for worker in self.workers:
            await worker.begin()
        self.runtime = DistributedRuntime(asyncio.get_running_loop(), 'file',
                                          'tcp')
        self.router = KvRouter(
            self.runtime.endpoint(ENDPOINT), self.block,
            KvRouterConfig(use_kv_events=self.events,
                           router_ttl_secs=self.ttl))
        await self.until_known()
        if self.events:
            for worker in self.workers:
                await self.until_heard(worker)

    async def until_heard(self, worker):
        """Events that come before the router listens are lost."""
        probe = Prompt([2] * self.block, None, None)
        names = worker.cache.names(probe, self.block)

        async def heard():
            worker.publish(stored_event(probe, names, 0, self.block))
            await asyncio.sleep(.2)
            return (await self.ask(probe))[0][worker.id] == 1
        await until(heard, 'the router hears its workers')
        worker.publish({'removed': names})

    def new_worker(self):
        return Worker(self.block, self.events)

    def scope(self, prompt):
        return {'lora_name': prompt.adapter, 'cache_namespace': prompt.salt}

    async def until_known(self):
        """All workers that there are, and no others."""
        probe = Prompt([1] * self.block, None, None)
        wanted = {worker.id for worker in self.workers if worker}

        async def known():
            overlaps, loads = await self.ask(probe)
            return overlaps.keys() == wanted and loads.keys() == wanted
        await until(known, 'the router sees its workers')

    async def ask(self, prompt):
        """Overlaps and loads by worker."""
        scope = self.scope(prompt)
        overlaps = await self.router.get_overlap_scores(prompt.tokens, **scope)
        loads = await self.router.get_potential_loads(prompt.tokens, **scope)
        return ({row['worker_id']: row['device_blocks']
                 for row in overlaps['workers']},
                {row['worker_id']: row for row in loads})

    async def choose(self, prompt, request):
        return await self.router.best_worker(
            prompt.tokens, request_id=str(request),
            update_indexer=not self.events, **self.scope(prompt))

    def hashes(self, prompt):
        from dynamo.llm import compute_block_hash_for_seq
        return compute_block_hash_for_seq(prompt.tokens, self.block,
                                          **self.scope(prompt))

    def end(self):
        for worker in self.workers:
            if worker:
                worker.child.kill()
                worker.child.wait()


async def until(condition, what):
    for _ in range(WAIT * 50):
        if await condition():
            return
        await asyncio.sleep(.02)
    sys.exit('never: ' + what)


class Run:
    """One sequence."""

    def __init__(self, program, kind, block, seed):
        self.kind, self.block = kind, block
        self.events = kind == 'events'
        ttl = TTL.get(kind, 3600.0)
        self.draw = random.Random(seed)
        self.texts = Texts(self.draw)
        self.counts = Counts()
        self.mirror = Mirror(program, block, ttl, self.events)
        self.router = Router(block, ttl, self.events)
        self.active = []    # [request, worker, prompt, has a token]

    # ------------------------------------------------------------ requests

    async def request(self, request):
        prompt = self.texts.next()
        self.mirror.prompt(prompt)
        if request % 4 == 0:
            self.compare_hashes(request, prompt)
        overlaps, loads = await self.router.ask(prompt)
        chosen, ours = self.mirror.workers()
        self.compare_workers(request, prompt, overlaps, loads, ours)
        identifier, _, overlap = await self.router.choose(prompt, request)
        w = next(i for i, worker in enumerate(self.router.workers)
                 if worker and worker.id == identifier)
        self.counts.equal('chosen overlaps', overlap, ours[w][0], request)
        self.compare_choice(request, w, chosen, ours)
        self.mirror.do('book', w, request)
        self.active.append([request, w, prompt, False])
        if self.events:
            await self.store(w, prompt, 1)

    def compare_hashes(self, request, prompt):
        dynamo, ours = self.router.hashes(prompt), self.mirror.hashes()
        self.counts.equal('numbers of hashes', len(dynamo), len(ours), request)
        for pair in zip(dynamo, ours):
            self.counts.equal('hashes', *pair, request)

    def compare_workers(self, request, prompt, overlaps, loads, ours):
        equal, n = self.counts.equal, len(prompt.tokens)
        present = {i: w for i, w in enumerate(self.router.workers) if w}
        equal('sets of workers', sorted(present), sorted(ours), request)
        for i, worker in present.items():
            overlap, prefill, decode, new, requests, _ = ours[i]
            load = loads[worker.id]
            equal('overlaps', overlaps[worker.id], overlap, request)
            if overlap:
                self.counts.compared['overlaps above 0'] += 1
            if self.events:
                names = worker.cache.names(prompt, self.block)
                equal('modelled caches', worker.cache.held(names), overlap,
                      request)
            equal('prefill loads', load['potential_prefill_tokens'],
                  prefill + max(0, n - overlap * self.block), request)
            equal('decode loads', load['potential_decode_blocks'],
                  decode + new, request)
            equal('request counts', load['active_requests'], requests,
                  request)

    def compare_choice(self, request, w, chosen, ours):
        least = min(row[5] for row in ours.values())
        best = [i for i, row in ours.items()
                if row[5] <= least + 1e-9 * max(1, abs(least))]
        # Each choice alone: both may be wrong, and so equal.
        kind = 'choices' if len(best) == 1 else 'ties'
        self.counts.equal(kind, w, w if w in best else best, request)
        self.counts.equal('own choices', chosen if chosen in best else best,
                          chosen, request)

    async def advance(self):
        """Some request has its first token, or ends."""
        at = self.draw.randrange(len(self.active))
        request, w, prompt, started = self.active[at]
        if self.draw.random() < .5 and len(self.active) < ACTIVE_MAX:
            if not started:
                self.active[at][3] = True
                await self.router.router.mark_prefill_complete(str(request))
                self.mirror.do('first', request)
            return
        del self.active[at]
        await self.finish(request, w, prompt)

    async def finish(self, request, w, prompt):
        await self.router.router.free(str(request))
        self.mirror.do('end', request)
        if self.events:
            cache = self.router.workers[w].cache
            cache.pin(cache.names(prompt, self.block), -1)

    # -------------------------------------------------------------- events

    async def until_held(self, worker, prompt, n):
        async def arrived():
            return (await self.router.ask(prompt))[0][worker.id] == n
        await until(arrived, 'an event arrives')

    async def store(self, w, prompt, pins):
        worker = self.router.workers[w]
        names = worker.cache.names(prompt, self.block)
        first = worker.cache.store(names)
        worker.cache.pin(names, pins)
        new = names[first:]
        if not new:
            return
        event = stored_event(prompt, names, first, self.block)
        self.mirror.scope(prompt)
        self.mirror.do('stored', w, worker.next(), event['parent'] or 0,
                       len(new), *new, *event['tokens'])
        worker.publish(event)
        await self.until_held(worker, prompt, len(names))

    async def remove(self):
        w = self.draw.randrange(WORKERS)
        worker = self.router.workers[w]
        prompt = self.draw.choice(self.texts.past)
        names = worker.cache.names(prompt, self.block)
        gone = worker.cache.evict(names, self.draw.randrange(1, 40))
        if not gone:
            return
        self.counts.compared['removed blocks'] += len(gone)
        self.mirror.do('removed', w, worker.next(), len(gone), *gone)
        worker.publish({'removed': gone})
        await self.until_held(worker, prompt, worker.cache.held(names))

    async def stray(self):
        """A prompt that another router sent."""
        await self.store(self.draw.randrange(WORKERS), self.texts.next(), 0)

    # ------------------------------------------------------------- workers

    async def replace_worker(self):
        w = self.draw.randrange(WORKERS)
        self.router.workers[w].leave()
        self.router.workers[w] = None
        await self.router.until_known()
        self.mirror.do('leave', w)
        self.active = [a for a in self.active if a[1] != w]
        self.counts.compared['workers that left'] += 1
        for _ in range(5):
            await self.request(self.next_request())
        worker = self.router.new_worker()
        await worker.begin()
        self.router.workers[w] = worker
        await self.router.until_known()
        self.mirror.do('join', w)

    async def expire(self):
        """All that was sent is forgotten after the TTL."""
        for request, w, prompt, _ in self.active:
            await self.finish(request, w, prompt)
        self.active = []
        self.mirror.flush()
        await asyncio.sleep(2 * TTL['expire'])
        for prompt in self.texts.past:
            self.mirror.prompt(prompt)
            ours = self.mirror.workers()[1]
            overlaps, _ = await self.router.ask(prompt)
            for i, worker in enumerate(self.router.workers):
                self.counts.equal('expired overlaps', overlaps[worker.id],
                                  ours[i][0], 'past')
                self.counts.equal('zeros', 0, ours[i][0], 'past')

    # -------------------------------------------------------------- all

    def next_request(self):
        self.counts.compared['requests'] += 1
        return self.counts.compared['requests'] - 1

    async def step(self, requests):
        x = self.draw.random()
        if self.active and (x < .5 or len(self.active) >= ACTIVE_MAX):
            await self.advance()
        elif self.events and self.texts.past and x < .65:
            await self.remove()
        elif self.events and x < .7:
            await self.stray()
        else:
            await self.request(self.next_request())
            n = self.counts.compared['requests']
            if self.kind == 'leave' and n % (requests // 3) == 0:
                await self.replace_worker()

    async def run(self, requests):
        await self.router.begin()
        while self.counts.compared['requests'] < requests:
            await self.step(requests)
        if self.kind == 'expire':
            await self.expire()
        self.counts.equal('ends of the mirror', 0, self.mirror.close(), 'last')


def prepare(folder):
    local = dict.fromkeys(
        ('DYN_TCP_RPC_HOST', 'DYN_TCP_RESPONSE_STREAM_HOST',
         'DYN_EVENT_PLANE_HOST', 'DYN_SYSTEM_HOST'), '127.0.0.1')
    os.environ.update(local, DYN_FILE_KV=folder, DYN_EVENT_PLANE='zmq',
                      DYN_LOG='error', HF_HUB_OFFLINE='1')


def main(program, kind, block, seed, requests):
    folder = tempfile.mkdtemp(prefix='kvroute-dynamo-')
    prepare(folder)
    run = Run(program, kind, int(block), int(seed))
    try:
        asyncio.run(run.run(int(requests)))
    finally:
        run.router.end()
        shutil.rmtree(folder, ignore_errors=True)
    counts = run.counts
    print(counts if not counts.first else '%d differ; %s' % (
        sum(counts.different.values()), '; '.join(counts.first[:5])))
    sys.stdout.flush()
    os._exit(bool(counts.first))    # threads of Dynamo's would go on


if __name__ == '__main__':
    main(*sys.argv[1:])
