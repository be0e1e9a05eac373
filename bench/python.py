# SPDX-License-Identifier: BSD-2-Clause
"""python.py - CPU time of a whole call in Python, in microseconds: a chat of 8 kB
and its response, and a stream of 64 pieces. The medians of rounds, the best and
the worst; `make bench-http` has the same of C."""
import json
import statistics
import time

from kvroute import Pool

CALLS, ROUNDS = 2000, 9
HEADERS = {"host": "engines", "content-type": "application/json",
           "user-agent": "bench", "accept": "*/*", "x-session-id": "s"}
USAGE = {"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020,
         "prompt_tokens_details": {"cached_tokens": 1900}}
ANSWER = json.dumps({"id": "a", "object": "chat.completion", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "yes " * 40},
     "finish_reason": "stop"}], "usage": USAGE}).encode()
PIECE = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"yes"}}]}\n\n'
LAST = b'data: {"id":"a","choices":[],"usage":%s}\n\ndata: [DONE]\n\n' % \
    json.dumps(USAGE).encode()


def body(stream):
    words = " ".join(f"word{i}" for i in range(1010))
    return json.dumps({"model": "m", "stream": stream, "messages": [
        {"role": "user", "content": words}]}).encode()


def whole(pool, text):
    call = pool.call("/v1/chat/completions").request(text, HEADERS)
    call.pick()
    call.response(200, "application/json")
    call.data(ANSWER)
    call.end()


def stream(pool, text):
    call = pool.call("/v1/chat/completions").request(text, HEADERS)
    call.pick()
    call.edited()
    call.response(200, "text/event-stream")
    for _ in range(64):
        call.data(PIECE)
    call.data(LAST)
    call.end()


def cost(run, pool, text):
    begun = time.thread_time_ns()
    run(pool, text)
    return (time.thread_time_ns() - begun) / 1000


for name, run, text in (("whole", whole, body(False)),
                        ("stream", stream, body(True))):
    medians = []
    for _ in range(ROUNDS):
        pool = Pool([f"10.0.0.{i}:8000" for i in range(8)], affinity="auto")
        medians.append(statistics.median(cost(run, pool, text)
                                         for _ in range(CALLS)))
    print(f"{name:6} {len(text)} bytes: {min(medians):.1f} to "
          f"{max(medians):.1f} us a call")
