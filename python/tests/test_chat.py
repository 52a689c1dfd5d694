"""examples/chat: the server beside eager's greedy tokens, whatever else runs; streams, stop strings, a full queue, clients that go away, bad
requests; and the parts of it alone."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import weft

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")
if not weft.has_llvm():
    pytest.skip("weft_llvm.so is not there", allow_module_level=True)
EXAMPLE = pathlib.Path(os.environ["WEFT_SOURCE"]) / "examples/chat"
sys.path.insert(0, str(EXAMPLE))

import weft.transformers  # noqa: E402
from engine import Engine, Full, Request, chosen  # noqa: E402
from text import Text  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

ROWS, LENGTH, CHUNK = 4, 256, 16


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A checkpoint, and the compiled model."""
    folder = tmp_path_factory.mktemp("chat")
    said = subprocess.run([sys.executable, EXAMPLE / "train.py", folder / "checkpoint"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    done = subprocess.run([sys.executable, EXAMPLE / "export.py", folder / "checkpoint", folder / "lm", "--rows", str(ROWS), "--length", str(LENGTH),
                           "--chunk", str(CHUNK)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "checkpoint", folder / "lm"


@pytest.fixture(scope="module")
def eager(folders):
    return AutoModelForCausalLM.from_pretrained(folders[0]).eval()


@pytest.fixture(scope="module")
def tokenizer(folders):
    return AutoTokenizer.from_pretrained(folders[1])


@contextlib.contextmanager
def started(folder, *options):
    """The port of a server; checks that it ends when it is asked to, without an error."""
    file = folder.parent / f"port{time.monotonic_ns()}"
    server = subprocess.Popen([sys.executable, EXAMPLE / "server.py", folder, "--port", "0", "--port-file", file, "--threads", "1", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 120
        while not file.exists() or not file.read_text():
            assert server.poll() is None and time.monotonic() < end, server.stderr.read()
            time.sleep(0.05)
        yield int(file.read_text())
        assert server.poll() is None
    finally:
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
    assert server.returncode == 0 and "Traceback" not in err and "engine:" not in out, out + err


@pytest.fixture(scope="module")
def port(folders):
    with started(folders[1]) as port:
        yield port


def ask(port, path, body=None, method=None):
    """Status and the object of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(method or ("GET" if body is None else "POST"), path, text)
    answer = connection.getresponse()
    value = json.loads(answer.read())
    connection.close()
    return answer.status, value


def events(port, path, body):
    """The objects of a stream."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", path, json.dumps({**body, "stream": True}))
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
    parts = answer.read().decode().split("\n\n")
    connection.close()
    assert parts[-2:] == ["data: [DONE]", ""]
    return [json.loads(part.removeprefix("data: ")) for part in parts[:-2]]


def health(port):
    return ask(port, "/health")[1]


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def greedy(eager, tokenizer, ids, most):
    """What eager mode answers to tokens."""
    out = eager.generate(torch.tensor([ids]), max_new_tokens=most, do_sample=False)[0, len(ids):].tolist()
    return tokenizer.decode(out, skip_special_tokens=True)


def prompts(tokenizer, count, longest=120):
    """Pieces of the pages, of different lengths; some begin alike."""
    text = "".join((pathlib.Path(os.environ["WEFT_SOURCE"]) / "docs" / name).read_text() for name in ("numerics.md", "python.md"))
    ids = tokenizer(text[:60000]).input_ids
    out = [ids[k * 150 % (len(ids) - longest):][:1 + k * 37 % longest] for k in range(count)]
    return [out[0 if k % 5 == 4 else k] + out[k] for k in range(count)]


# ---- answers ----

def test_one_answer(port, eager, tokenizer):
    ids = tokenizer("A back end is").input_ids
    status, got = ask(port, "/v1/completions", {"prompt": "A back end is", "temperature": 0, "max_tokens": 24})
    assert status == 200 and got["choices"][0]["text"] == greedy(eager, tokenizer, ids, 24)
    assert got["usage"]["prompt_tokens"] == len(ids) and got["usage"]["total_tokens"] == len(ids) + got["usage"]["completion_tokens"]
    assert got["object"] == "text_completion" and got["model"] == "lm"


def test_chat_by_the_template(port, eager, tokenizer):
    messages = [{"role": "system", "content": "short"}, {"role": "user", "content": [{"type": "text", "text": "Glossary"}]}]
    ids = tokenizer.apply_chat_template([messages[0], {"role": "user", "content": "Glossary"}], add_generation_prompt=True, return_dict=False)
    status, got = ask(port, "/v1/chat/completions", {"model": "lm", "messages": messages, "temperature": 0, "max_completion_tokens": 30})
    assert status == 200 and got["choices"][0]["message"] == {"role": "assistant", "content": greedy(eager, tokenizer, ids, 30)}
    assert got["usage"]["prompt_tokens"] == len(ids)


@pytest.mark.parametrize("fast", [False, True])
def test_parallel_answers_are_eagers(folders, port, eager, tokenizer, fast):
    """40 requests of 1 to some 200 tokens by 10 clients; also where the last bits may differ."""
    asked = prompts(tokenizer, 40)
    wanted = [greedy(eager, tokenizer, ids, 20 + k % 9) for k, ids in enumerate(asked)]

    def one(port, k):
        return ask(port, "/v1/completions", {"prompt": asked[k], "temperature": 0, "max_tokens": 20 + k % 9})
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(started(folders[1], "--fast")) if fast else port
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            got = list(pool.map(lambda k: one(at, k), range(len(asked))))
        counts = health(at)
    assert [status for status, _ in got] == [200] * len(asked)
    assert [value["choices"][0]["text"] for _, value in got] == wanted
    assert counts["active"] == 0 and counts["waiting"] == 0
    assert not fast or counts["reused_tokens"] > 0


def test_sampling_is_the_same_beside_others(port, tokenizer):
    """With a seed, an answer does not depend on what else runs."""
    body = {"prompt": "The compiler", "temperature": 0.9, "top_p": 0.9, "seed": 5, "max_tokens": 30}
    alone = ask(port, "/v1/completions", body)[1]["choices"][0]["text"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        others = [pool.submit(ask, port, "/v1/completions", {**body, "seed": k, "prompt": ids}) for k, ids in enumerate(prompts(tokenizer, 8))]
        again = [pool.submit(ask, port, "/v1/completions", body) for _ in range(3)]
    assert all(f.result()[0] == 200 for f in others)
    assert {f.result()[1]["choices"][0]["text"] for f in again} == {alone}
    different = {ask(port, "/v1/completions", {**body, "seed": k})[1]["choices"][0]["text"] for k in range(4)}
    assert len(different) > 1


def test_stream(port):
    body = {"messages": [{"role": "user", "content": "Back ends of your own"}], "temperature": 0, "max_tokens": 20}
    whole = ask(port, "/v1/chat/completions", body)[1]
    got = events(port, "/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})
    assert got[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""} and got[-1]["usage"] == whole["usage"]
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in got[:-1]) == whole["choices"][0]["message"]["content"]
    assert [e["choices"][0]["finish_reason"] for e in got[:-1]] == [None] * (len(got) - 2) + [whole["choices"][0]["finish_reason"]]
    assert len(got) > 5 and len({e["id"] for e in got}) == 1
    got = events(port, "/v1/completions", {"prompt": "A back end is", "temperature": 0, "max_tokens": 8, "ignore_eos": True})
    assert got[0]["object"] == "text_completion" and got[-1]["choices"][0]["finish_reason"] == "length"


def test_stop_strings(port):
    body = {"prompt": "A back end is", "temperature": 0, "max_tokens": 24}
    text = ask(port, "/v1/completions", body)[1]["choices"][0]["text"]
    for stop in (text[7:10], ["never there", text[-6:-3], text[4:6]], text[0]):
        first = min(text.find(s) for s in ([stop] if isinstance(stop, str) else stop) if s in text)
        got = ask(port, "/v1/completions", {**body, "stop": stop})[1]["choices"][0]
        assert got["text"] == text[:first] and got["finish_reason"] == "stop"
        streamed = events(port, "/v1/completions", {**body, "stop": stop})
        assert "".join(e["choices"][0]["text"] for e in streamed) == text[:first]
    got = ask(port, "/v1/completions", {**body, "stop": text + "more"})[1]["choices"][0]
    assert got["text"] == text


def test_the_end_of_the_cache(port, eager, tokenizer):
    ids = prompts(tokenizer, 30, 125)[13] * 4
    for count in (LENGTH, LENGTH - 3):
        status, got = ask(port, "/v1/completions", {"prompt": ids[:count], "temperature": 0, "max_tokens": 50})
        assert status == 200 and got["usage"]["completion_tokens"] <= LENGTH - count + 1
        assert got["choices"][0]["text"] == greedy(eager, tokenizer, ids[:count], got["usage"]["completion_tokens"])


# ---- a server that is busy, clients that go away ----

LONG = {"prompt": "a", "temperature": 0, "max_tokens": LENGTH - 8, "ignore_eos": True}


def begun(port, body):
    """The socket of a client that has asked for a stream, and has read its beginning."""
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    text = json.dumps({**body, "stream": True}).encode()
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    return client


def test_full(folders):
    with started(folders[1], "--queue", "1") as port:
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            got = list(pool.map(lambda k: ask(port, "/v1/completions", {**LONG, "prompt": f"{k}"}), range(40)))
        refused = [value for status, value in got if status == 429]
        assert {status for status, _ in got} == {200, 429}
        assert refused[0]["error"]["type"] == "rate_limit_error" and "requests wait already" in refused[0]["error"]["message"]
        assert ask(port, "/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200


def test_clients_that_go_away(port):
    before = health(port)
    clients = [begun(port, {**LONG, "temperature": 1, "seed": k, "prompt": f"{k} of"}) for k in range(ROWS + 3)]
    for client in clients:
        client.close()
    until(lambda: health(port)["active"] == 0 and health(port)["waiting"] == 0)
    text = json.dumps({**LONG, "temperature": 1}).encode()  # one that waits for the whole answer
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    time.sleep(0.05)
    client.close()
    until(lambda: health(port)["active"] == 0)
    assert health(port).get("cancelled", 0) > before.get("cancelled", 0)
    assert ask(port, "/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200


def test_one_connection(port):
    """Requests one behind the other, also before the first is answered; 100-continue; a beginning that never goes on."""
    text = json.dumps({"prompt": "a", "max_tokens": 2}).encode()
    one = b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n%s" % (len(text), text)
    slow = socket.create_connection(("127.0.0.1", port), timeout=60)
    slow.sendall(b"POST /v1/comple")
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.sendall(one * 3 + b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")
    got = b""
    while more := client.recv(65536):
        got += more
    assert got.count(b"HTTP/1.1 200 OK") == 4 and got.count(b"HTTP/1.1 100 Continue") == 3 and got.endswith(b"}]}")
    slow.close()


def test_models(port):
    assert ask(port, "/v1/models")[1]["data"][0]["id"] == "lm"


CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize("path, body, status, message", [
    (TEXT, b"{", 400, "the body is not JSON"), (TEXT, b"\xff", 400, "the body is not JSON"), (TEXT, b"[" * 100000, 400, "the body is not JSON"),
    (TEXT, b"[]", 400, "the body is []: expected an object"), (TEXT, b"", 400, "not JSON"),
    (TEXT, {"promt": "x"}, 400, "there is no field 'promt': did you mean 'prompt'?"), (TEXT, {"prompt": ["a", "b"]}, 400, "expected a text"),
    (TEXT, {"prompt": 3}, 400, "prompt is 3"), (TEXT, {"prompt": [1 << 40]}, 400, "numbers of tokens"), (TEXT, {"prompt": [-1]}, 400, "numbers of tokens"),
    (TEXT, {"prompt": ""}, 400, "no tokens"), (TEXT, {"prompt": [5] * (LENGTH + 1)}, 400, f"the model can hold {LENGTH}"),
    (TEXT, b'{"prompt": "\\ud800"}', 400, "surrogate"), (TEXT, {"prompt": "x", "temperature": 3}, 400, "temperature is 3"),
    (TEXT, {"prompt": "x", "temperature": "0"}, 400, "expected a number from 0 to 2"), (TEXT, b'{"prompt": "x", "temperature": NaN}', 400, "temperature"),
    (TEXT, {"prompt": "x", "top_p": 0}, 400, "top_p is 0"), (TEXT, {"prompt": "x", "max_tokens": 0}, 400, "max_tokens is 0: expected an integer"),
    (TEXT, {"prompt": "x", "seed": 1 << 70}, 400, "seed"), (TEXT, {"prompt": "x", "stop": [""]}, 400, "stop is"),
    (TEXT, {"prompt": "x", "stop": ["a"] * 17}, 400, "at most 16"), (TEXT, {"prompt": "x", "stream": 1}, 400, "stream is 1"),
    (TEXT, {"prompt": "x", "n": 2}, 400, "n is not supported"), (TEXT, {"prompt": "x", "model": "gpt-4"}, 404, "there is no model \"gpt-4\""),
    (CHAT, {"messages": []}, 400, "expected a list of objects"), (CHAT, {"messages": ["x"]}, 400, "messages[0] is"),
    (CHAT, {"messages": [{"role": "user"}]}, 400, "messages[0]"), (CHAT, {"messages": [{"role": "tool", "content": "x"}]}, 400, "there is no role tool"),
    (CHAT, {"messages": HELLO, "tools": [{"type": "function"}]}, 400, "tools is not supported"), (CHAT, {"messages": HELLO, "prompt": "x"}, 400, "no field"),
    ("/v1/embeddings", {}, 404, "there is no /v1/embeddings"), (TEXT, None, 405, "is for POST"),
])
def test_bad_requests(port, path, body, status, message):
    got, value = ask(port, path, body)
    assert got == status and message in value["error"]["message"] and "\n" not in value["error"]["message"], value


def test_old_http(port):
    """HTTP/1.0 has no chunks: a stream ends with the connection."""
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    text = json.dumps({"prompt": "a", "max_tokens": 3, "stream": True, "ignore_eos": True}).encode()
    client.sendall(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    got = b""
    while more := client.recv(65536):
        got += more
    body = got.partition(b"\r\n\r\n")[2].decode()
    assert body.endswith("data: [DONE]\n\n") and all(part.startswith("data: ") for part in body.split("\n\n")[:-1])


@pytest.mark.parametrize("text, status", [
    (b"hello\r\n\r\n", 400), (b"POST /v1/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
    (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411), (b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 70000, 431),
])
def test_bad_http(port, text, status):
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.sendall(text)
    assert client.recv(13) == b"HTTP/1.1 %d " % status
    client.close()


def test_a_folder_that_is_none(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE / "server.py", tmp_path / "none"], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "none" in done.stderr


def test_terminal(folders):
    done = subprocess.run([sys.executable, EXAMPLE / "chat.py", folders[1]], input="Back ends of your own\nGlossary\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("> A back end is") and done.stdout.count("\n> ") == 2


# ---- parts ----

class Letters:
    """A tokenizer whose tokens are bytes."""
    def decode(self, ids, skip_special_tokens):
        return bytes(ids).decode(errors="replace")


@pytest.mark.parametrize("text, stop, wanted", [
    ("größer 🙂 ende", (), "größer 🙂 ende"), ("aaab", ("ab",), "aa"), ("abcabd", ("abd",), "abc"), ("abab", ("abc",), "abab"), ("x🙂y", ("🙂",), "x"),
    ("stop", ("stop",), ""), ("one two", ("two", "ne t"), "o"), ("aXY", ("XYZ", "Y"), "aX"),
])
def test_text(text, stop, wanted):
    t, got = Text(Letters(), stop), ""
    for byte in text.encode():
        got += t.add(byte)
        assert wanted.startswith(got) and "\ufffd" not in got
        if t.stopped:
            break
    assert got + t.end() == wanted


def test_text_with_half_a_character():
    t = Text(Letters())
    assert t.add(0xc3) == "" and t.end() == "\ufffd"


def test_chosen():
    """Frequencies of 4,000 draws; with top_p only the likely ones."""
    p = torch.tensor([0.5, 0.2, 0.2, 0.1])
    for size in (4, 1000):
        logits = torch.cat([p.log(), torch.full((size - 4,), -30.0)])
        random = torch.Generator().manual_seed(0)
        count = torch.bincount(torch.tensor([chosen(logits, 1, 1, random) for _ in range(4000)]), minlength=4)[:4] / 4000
        assert (count - p).abs().max() < 0.03
        got = {chosen(logits, 1, 0.65, random) for _ in range(300)}
        assert 0 in got and len(got) == 2 and got <= {0, 1, 2}
        assert {chosen(logits, 1, 0.4, random) for _ in range(50)} == {0}
        assert chosen(logits, 0, 1, random) == 0


def test_engine_queue(folders, tokenizer):
    """Requests beyond the queue are refused, and those that were cancelled while they waited make room."""
    engine = Engine(weft.transformers.load(folders[1]), tokenizer, queue=2)
    ended, done = [], threading.Event()

    def give(text, end):
        if end is not None:
            ended.append(end)
            done.set()
    requests = [Request([5], give, LENGTH, temperature=1, seed=k, endless=True) for k in range(ROWS + 2)]
    for request in requests:
        engine.submit(request)
    with pytest.raises(Full):
        engine.submit(Request([5], give, 1))
    until(lambda: engine.busy == ROWS)
    requests[-1].cancelled = True
    engine.submit(Request([5], give, 1))
    engine.close()
    assert set(ended) <= {"cancelled", "length"} and len(ended) >= ROWS + 2
    with pytest.raises(Full):
        engine.submit(Request([5], give, 1))
