#!/usr/bin/env python3
"""load_test.py [--program EXL3] [--seconds 20] [--streams 64]: many clients at once, some of which misbehave.

Well-behaved streams run beside clients that hang up, send malformed bodies or read slowly. Ends with status 1 if a
well-behaved client saw an error, memory grew after the first third, or the p99 of the latency that HTTP adds exceeds
--limit-ms. That latency is measured on /ping while the load runs: the request shares the I/O thread with every stream
and does nothing else.
"""
import argparse
import asyncio
import json
import os
import pathlib
import random
import sys
import time

import httpx2 as httpx

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def body(rng, **more):
    return {"prompt": "Once upon a time " + "there was a fox " * rng.randrange(1, 30), "stream": True,
            "max_tokens": rng.randrange(8, 80), "seed": rng.randrange(1 << 30), **more}


class Load:
    def __init__(self, server, seconds):
        self.server, self.end = server, time.monotonic() + seconds
        self.errors, self.done, self.dropped, self.refused, self.pings = [], 0, 0, 0, []

    def running(self):
        return time.monotonic() < self.end

    async def good(self, rng):
        async with httpx.AsyncClient(base_url=self.server.url, timeout=120) as client:
            while self.running():
                request, tokens, ended = body(rng, ignore_eos=True, stream_options={"include_usage": True}), 0, False
                try:
                    async with client.stream("POST", "/v1/completions", json=request) as r:
                        if r.status_code != 200:
                            self.errors.append(f"status {r.status_code}")
                            continue
                        async for line in r.aiter_lines():
                            ended |= line == "data: [DONE]"
                            if line.startswith("data: {"):
                                usage = json.loads(line[6:]).get("usage")
                                tokens = usage["completion_tokens"] if usage else tokens
                    if not ended or tokens != request["max_tokens"]:
                        self.errors.append(f"{tokens} tokens of {request['max_tokens']}, ended: {ended}")
                    self.done += 1
                except httpx.HTTPError as e:
                    self.errors.append(repr(e))

    async def connection(self, request):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        text = json.dumps(request).encode() if isinstance(request, dict) else request
        writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        await writer.drain()
        return reader, writer

    async def dropper(self, rng):
        while self.running():
            reader, writer = await self.connection(body(rng, max_tokens=500, n=rng.choice([1, 3])))
            await asyncio.sleep(rng.random() * 0.6)
            writer.close()
            self.dropped += 1

    async def nonsense(self, rng):
        while self.running():
            junk = rng.choice([b"{", b'{"prompt": 5}', b'{"prompt": "a", "n": -1}', b"[" * 5000, os.urandom(300),
                               b'{"prompt": "a", "prompt": "b"}', b'{"prompt": "a", "temperature": 1e308}'])
            reader, writer = await self.connection(junk)
            status = (await reader.readline()).split(b" ")[1]
            if status != b"400":
                self.errors.append(f"malformed body got {status}")
            self.refused += 1
            writer.close()
            await asyncio.sleep(0.05)

    async def slow(self, rng):
        while self.running():
            reader, writer = await self.connection(body(rng))
            while self.running() and (await reader.read(200)):
                if reader.at_eof():
                    break
                await asyncio.sleep(0.05)
            writer.close()

    async def pinger(self):
        async with httpx.AsyncClient(base_url=self.server.url, timeout=60) as client:
            while self.running():
                start = time.perf_counter()
                await client.get("/ping")
                self.pings.append((time.perf_counter() - start) * 1e3)
                await asyncio.sleep(0.02)

    async def memory(self, seen):
        while self.running():
            seen.append(self.server.memory_mb())
            await asyncio.sleep(0.25)


async def run(load, streams):
    seen = []
    jobs = [load.good(random.Random(i)) for i in range(streams * 5 // 8)]
    jobs += [load.dropper(random.Random(1000 + i)) for i in range(streams // 8)]
    jobs += [load.nonsense(random.Random(2000 + i)) for i in range(streams // 8)]
    jobs += [load.slow(random.Random(3000 + i)) for i in range(streams // 8)]
    await asyncio.gather(*jobs, load.pinger(), load.memory(seen))
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--limit-ms", type=float, default=0, help="0: latency is reported, not judged")
    args = parser.parse_args()
    if args.program:
        os.environ["EXL3_PROGRAM"] = args.program
    from conftest import Server

    server = Server()
    load = Load(server, args.seconds)
    seen = asyncio.run(run(load, args.streams))
    time.sleep(1)
    health = httpx.get(server.url + "/health", timeout=30).json()
    status = server.stop()
    pings = sorted(load.pings)
    p99 = pings[int(len(pings) * 0.99)]
    third = seen[len(seen) // 3:]
    growth = max(third[len(third) // 2:]) - max(third[:len(third) // 2]) if len(third) > 4 else 0
    print(json.dumps({"streams": args.streams, "seconds": args.seconds, "answers": load.done, "dropped": load.dropped,
                      "malformed": load.refused, "errors": len(load.errors), "first_errors": load.errors[:3],
                      "ping_p50_ms": round(pings[len(pings) // 2], 2), "ping_p99_ms": round(p99, 2),
                      "memory_mb": round(seen[-1], 1), "memory_growth_mb": round(growth, 1),
                      "running_after": health["running"], "exit_status": status}))
    failed = bool(load.errors) or status != 0 or health["running"] or growth > 8
    return 1 if failed or (args.limit_ms and p99 > args.limit_ms) else 0


if __name__ == "__main__":
    sys.exit(main())
