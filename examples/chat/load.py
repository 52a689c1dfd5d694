"""Requests of many clients to a server: load.py PORT [--clients 8] [--seconds 10] [--rate 0] [--prompt 64] [--tokens 64] [--pid N]

Each client sends its next request once it has its answer; with --rate, requests begin at random moments, so many in a second, and no client
waits for another. Prompts are tokens at random, and answers do not end early. Prints tokens per second, latencies, refusals; with --pid the
memory of the server at each tenth of the time."""
from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from pathlib import Path


async def ask(port: int, body: dict[str, object]) -> int:
    """The status of the answer, once all of it is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    text = json.dumps(body).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    got = await reader.read(-1)
    writer.close()
    return int(got.split(b" ", 2)[1])


class Load:
    def __init__(self, args: argparse.Namespace):
        self.args, self.random, self.end = args, random.Random(0), time.monotonic() + args.seconds
        self.times: list[float] = []
        self.statuses: dict[int, int] = {}

    async def one(self) -> None:
        begin = time.monotonic()
        prompt = [self.random.randrange(5, self.args.vocabulary) for _ in range(self.args.prompt)]
        status = await ask(self.args.port, {"prompt": prompt, "max_tokens": self.args.tokens, "temperature": 0, "ignore_eos": True})
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            self.times.append(time.monotonic() - begin)

    async def client(self) -> None:
        while time.monotonic() < self.end:
            await self.one()

    async def at_random(self) -> None:
        running = set()
        while time.monotonic() < self.end:
            running.add(task := asyncio.ensure_future(self.one()))
            task.add_done_callback(running.discard)
            await asyncio.sleep(self.random.expovariate(self.args.rate))
        if running:
            await asyncio.wait(running)

    async def watch(self) -> None:
        """Prints the memory of the server."""
        while time.monotonic() < self.end:
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.args.pid}/status").read_text().splitlines())
            print(f"{self.args.seconds - (self.end - time.monotonic()):.0f} s: {int(fields['VmRSS'].split()[0]) / 1000:.1f} MB, "
                  f"{int(fields['RssAnon'].split()[0]) / 1000:.1f} MB of no file, {fields['Threads'].strip()} threads", flush=True)
            await asyncio.sleep(self.args.seconds / 10)

    async def run(self) -> None:
        begin = time.monotonic()
        tasks = [self.at_random()] if self.args.rate else [self.client() for _ in range(self.args.clients)]
        await asyncio.gather(*tasks, *([self.watch()] if self.args.pid else []))
        took, times = time.monotonic() - begin, sorted(self.times)
        print(f"{len(times) * self.args.tokens / took:.1f} tokens/s, {len(times) / took:.2f} requests/s, statuses {self.statuses}")
        if times:
            print(f"latency p50 {times[len(times) // 2]:.3f} s, p99 {times[len(times) * 99 // 100]:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=0, help="requests a second")
    parser.add_argument("--prompt", type=int, default=64, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--vocabulary", type=int, default=200, help="of the prompts")
    parser.add_argument("--pid", type=int)
    asyncio.run(Load(parser.parse_args()).run())


if __name__ == "__main__":
    main()
