"""An HTTP server with the interface of OpenAI: server.py FOLDER [--host 127.0.0.1] [--port 8000] [--threads N] [--queue 32]
    [--fast] [--name NAME] [--port-file FILE]

FOLDER: what export.py wrote. Answers POST /v1/chat/completions and /v1/completions (whole, or streamed by server-sent events),
GET /v1/models, and GET /health. Stops at SIGTERM and SIGINT."""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import torch
import weft.transformers
from api import Bad, read_request
from engine import Engine, Full, Request
from transformers import AutoTokenizer

MOST_BODY = 4 << 20
MOST_HEAD = 64 << 10
STATUS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 411: "Length Required",
          413: "Content Too Large", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error"}
IDLE = 75  # seconds that a connection may wait for its next request


class Gone(Exception):
    """The client closed the connection."""


class Connection:
    """A client's connection: requests one behind the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer, self.read, self.chunked = reader, writer, bytearray(), True

    async def more(self) -> None:
        part = await self.reader.read(MOST_HEAD)
        if not part:
            raise Gone
        self.read += part

    def take(self, count: int) -> bytes:
        part = bytes(self.read[:count])
        del self.read[:count]
        return part

    async def request(self) -> tuple[str, str, bytes, bool]:
        """Method, path, body, and whether the connection stays open."""
        while (end := self.read.find(b"\r\n\r\n")) < 0:
            if len(self.read) > MOST_HEAD:
                raise Bad("the header of the request is too long", 431)
            await self.more()
        first, *lines = self.take(end + 4)[:-4].decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise Bad(f"the request begins with {first[:60]!r}: expected a method, a path and HTTP/1.1")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.chunked = words[2] != "HTTP/1.0"
        stays = fields.get("connection", "").lower() != "close" and self.chunked
        if "transfer-encoding" in fields:
            raise Bad("the body has a transfer encoding: send it with Content-Length", 411)
        length = fields.get("content-length", "0")
        if not length.isdecimal():
            raise Bad(f"Content-Length is {length[:40]!r}: expected a number of bytes")
        if int(length) > MOST_BODY:
            raise Bad(f"the body has {length[:40]} bytes: at most {MOST_BODY} are read", 413)
        if fields.get("expect", "").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self.read) < int(length):
            await self.more()
        return words[0], words[1].partition("?")[0], self.take(int(length)), stays

    async def closed(self) -> None:
        """Returns when the client has closed the connection; one that has sent much of its next requests is not looked at."""
        with contextlib.suppress(Gone, ConnectionError):
            while len(self.read) <= MOST_HEAD:
                await self.more()
            await asyncio.Event().wait()

    def head(self, status: int, kind: str, *more: str) -> None:
        lines = [f"HTTP/1.1 {status} {STATUS[status]}", f"Content-Type: {kind}", *more]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def answer(self, status: int, value: Any, *more: str) -> None:
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        self.head(status, "application/json", f"Content-Length: {len(text)}", *more)
        self.writer.write(text)
        await self.writer.drain()

    async def part(self, text: bytes) -> None:
        """A part of a streamed answer; an empty one ends it."""
        self.writer.write(b"%x\r\n%s\r\n" % (len(text), text) if self.chunked else text)
        await self.writer.drain()

    async def event(self, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        await self.part(b"data: " + text.encode("utf-8", "replace") + b"\n\n")


def error(message: str, status: int, field: str | None = None) -> dict[str, Any]:
    kind = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": field, "code": None}}


class Server:
    def __init__(self, folder: Path, name: str, threads: int, queue: int, exact: bool):
        self.name, self.begin = name, int(time.time())
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.lm = weft.transformers.load(folder)
        self.lm.threads = threads
        self.engine = Engine(self.lm, self.tokenizer, queue, exact)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        try:
            stays = True
            while stays:
                whole = False  # whether the request was read to its end
                try:
                    async with asyncio.timeout(IDLE):
                        method, path, body, stays = await connection.request()
                    whole = True
                    await self.dispatch(connection, method, path, body)
                except Bad as e:
                    stays = stays and whole
                    await connection.answer(e.status, error(str(e), e.status, e.field), *([] if stays else ["Connection: close"]))
        except (Gone, ConnectionError, TimeoutError):
            pass
        finally:
            writer.close()

    async def dispatch(self, connection: Connection, method: str, path: str, body: bytes) -> None:
        calls = {"/v1/chat/completions": "POST", "/v1/completions": "POST", "/v1/models": "GET", "/health": "GET"}
        if path not in calls:
            raise Bad(f"there is no {path[:80]}: expected one of {', '.join(calls)}", 404)
        if method != calls[path]:
            raise Bad(f"{path} is for {calls[path]}, not {method[:20]}", 405)
        if path == "/v1/models":
            await connection.answer(200, {"object": "list", "data": [{"id": self.name, "object": "model", "created": self.begin, "owned_by": "weft"}]})
        elif path == "/health":
            await connection.answer(200, {"status": "ok", "active": self.engine.busy, "waiting": len(self.engine.waiting), **self.engine.counts})
        else:
            await self.complete(connection, body, path == "/v1/chat/completions")

    async def complete(self, connection: Connection, body: bytes, chat: bool) -> None:
        """Answers one request for text."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue()
        asked = read_request(body, chat, self.name, self.tokenizer, self.lm.max_length,
                             self.lm.config.get_text_config().vocab_size)
        request = Request(asked.ids, lambda text, end: loop.call_soon_threadsafe(pieces.put_nowait, (text, end)), asked.most, asked.temperature,
                          asked.top_p, asked.seed, asked.stop, asked.endless)
        try:
            self.engine.submit(request)
        except Full as e:
            await connection.answer(429, error(f"the server is busy: {e}; try again later", 429), "Retry-After: 1")
            return
        gone = asyncio.ensure_future(connection.closed())
        try:
            reply = Reply(self.name, chat, request)
            if asked.stream:
                await self.stream(connection, reply, pieces, gone, asked.usage)
            else:
                text, end = "", None
                while end is None:
                    more, end = await next_of(pieces, gone)
                    text += more
                if end not in ("stop", "length"):
                    await connection.answer(500, error("the request ended early", 500))
                else:
                    await connection.answer(200, reply.whole(text, end))
        finally:
            request.cancelled = True
            gone.cancel()
            await asyncio.wait([gone])

    async def stream(self, connection: Connection, reply: Reply, pieces: asyncio.Queue, gone: asyncio.Future, usage: bool) -> None:
        connection.head(200, "text/event-stream", "Cache-Control: no-cache", "Transfer-Encoding: chunked" if connection.chunked else "Connection: close")
        if reply.chat:
            await connection.event(reply.chunk({"role": "assistant", "content": ""}, None))
        end = None
        while end is None:
            text, end = await next_of(pieces, gone)
            if text:
                await connection.event(reply.chunk(text, None))
        if end in ("stop", "length"):
            await connection.event(reply.chunk("", end))
            if usage:
                await connection.event({**reply.frame(True), "choices": [], "usage": reply.usage()})
        else:
            await connection.event(error("the request ended early", 500))
        await connection.event("[DONE]")
        await connection.part(b"")


async def next_of(pieces: asyncio.Queue, gone: asyncio.Future) -> tuple[str, str | None]:
    """The next piece of an answer, unless the client goes away."""
    if pieces.empty():
        piece = asyncio.ensure_future(pieces.get())
        await asyncio.wait([piece, gone], return_when=asyncio.FIRST_COMPLETED)
        if not piece.done():
            piece.cancel()
            raise Gone
        return piece.result()
    return pieces.get_nowait()


class Reply:
    """The objects of an answer."""

    def __init__(self, name: str, chat: bool, request: Request):
        self.name, self.chat, self.request = name, chat, request
        self.id, self.created = ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex, int(time.time())

    def frame(self, streamed: bool) -> dict[str, Any]:
        kind = ("chat.completion" + (".chunk" if streamed else "")) if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.name}

    def usage(self) -> dict[str, int]:
        asked, answered = len(self.request.ids), self.request.answered
        return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}

    def whole(self, text: str, end: str) -> dict[str, Any]:
        content = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        return {**self.frame(False), "choices": [{"index": 0, **content, "logprobs": None, "finish_reason": end}], "usage": self.usage()}

    def chunk(self, content: str | dict[str, str], end: str | None) -> dict[str, Any]:
        if self.chat:
            delta = content if isinstance(content, dict) else {"content": content} if content else {}
            return {**self.frame(True), "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        return {**self.frame(True), "choices": [{"index": 0, "text": content, "logprobs": None, "finish_reason": end}]}


async def run(args: argparse.Namespace) -> None:
    served = Server(args.folder, args.name or args.folder.resolve().name, args.threads, args.queue, not args.fast)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with await asyncio.start_server(served.serve, args.host, args.port, limit=MOST_HEAD) as server:
            port = server.sockets[0].getsockname()[1]
            if args.port_file:
                args.port_file.write_text(str(port))
            print(f"serving {served.name} at http://{args.host}:{port}/v1: {served.lm.batch} requests at a time, {args.queue} more wait", flush=True)
            await stop.wait()
            server.close()
            served.engine.close()
            await asyncio.sleep(0.1)  # answers that are on their way
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
    finally:
        served.engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    parser.add_argument("--port-file", type=Path, help="write the port into this file once the server listens")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--queue", type=int, default=32, help="requests that may wait; further ones are refused with status 429")
    parser.add_argument("--fast", action="store_true", help="the last bits of logits may depend on what runs beside and ran before")
    parser.add_argument("--name", help="of the model; default: the folder's name")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    try:
        asyncio.run(run(args))
    except (OSError, ValueError) as e:
        print(f"server.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
