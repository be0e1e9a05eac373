# SPDX-License-Identifier: BSD-2-Clause
"""kvroute: send each LLM request to the server that has its prefix in cache.

    pool = Pool({"10.0.0.1:8000": "capacity=400000", "10.0.0.2:8000": ""})
    with pool.call("/v1/chat/completions").request(body, headers) as call:
        server = call.pick()[0]
        ...                      # send it there by any HTTP client
        call.response(status, content_type)
        for piece in response:
            send(call.data(piece))
        send(call.end())

No call blocks, so an asyncio program makes them as they are.
"""
from ._pool import Call, Failure, How, Poll, Pool, Usage
from ._library import KvrouteError, Unavailable

__all__ = ["Call", "Failure", "How", "KvrouteError", "Poll", "Pool",
           "Unavailable", "Usage"]
