#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gateway.py PORT ENGINE[,FACT...] ... - an asyncio gateway before engines, such
as 127.0.0.1:8000,capacity=auto,max_conns=64; requests wait while all are full.
Needs aiohttp. KVROUTE_REGION names a file that several share."""
import os
import sys

import aiohttp
from aiohttp import web

from kvroute import Failure, How, Pool, Unavailable
from kvroute.aio import Background

HOP = {"host", "connection", "content-length", "transfer-encoding"}
INFLATED = {"gzip", "deflate", "br", "zstd"}  # requests, by aiohttp
TRY_ANOTHER = {429, 502, 503, 504}


def passed(headers):
    return [(n, v) for n, v in headers.items() if n.lower() not in HOP]


def headers_of(request):
    return [(n, v) for n, v in passed(request.headers)
            if n.lower() != "content-encoding" or v.lower() not in INFLATED]


async def ask(app, call, request, headers):
    """The response of the first server that answers."""
    for left in (2, 1, 0):
        server = (await app["background"].pick(call))[0]
        try:
            response = await app["client"].request(
                request.method, f"http://{server}{request.raw_path}",
                data=call.edited(),
                headers=call.edited_headers(headers))
        except aiohttp.ClientConnectorError:
            call.failed(Failure.REFUSED)
        except (aiohttp.ClientError, TimeoutError):
            call.failed(Failure.BROKE)
        else:
            if response.status not in TRY_ANOTHER or not left:
                return response
            call.failed(Failure.STATUS, response.status)
            response.close()
    raise web.HTTPBadGateway


async def handle(request):
    pool = request.app["pool"]
    body, headers = await request.read(), headers_of(request)
    with pool.call(request.path, request.method).tell(
            client=request.remote or "").request(body, headers) as call:
        try:
            answer = await ask(request.app, call, request, headers)
        except Unavailable as e:
            return web.Response(status=e.status,
                                headers={"retry-after": str(e.retry_after)})
        async with answer:
            call.response(answer.status, answer.headers.get("content-type", ""),
                          answer.headers.get("content-encoding", ""))
            out = web.StreamResponse(status=answer.status,
                                     headers=passed(answer.headers))
            await out.prepare(request)
            try:
                async for piece in answer.content.iter_any():
                    await out.write(call.data(piece))
            except aiohttp.ClientPayloadError:
                call.end(How.ENGINE_BROKE)
                request.transport.abort()
            await out.write_eof(call.end())
            return out


async def run(app):
    async def get(url):
        async with app["client"].get(url) as response:
            return response.status, await response.read()

    async with aiohttp.ClientSession(
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(sock_connect=2)) as app["client"]:
        async with Background(app["pool"], get) as app["background"]:
            yield


app = web.Application(client_max_size=1 << 26)
app["pool"] = Pool({name: facts.replace(",", " ") for name, _, facts in (
    engine.partition(",") for engine in sys.argv[2:])},
    region=os.environ.get("KVROUTE_REGION", ""), affinity="auto", queue=1024,
    poll="1s")
app.cleanup_ctx.append(run)
app.router.add_route("*", "/{path:.*}", handle)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None,
            handler_cancellation=True)
