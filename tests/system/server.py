"""The example server (examples/server): server.py WEFT SOURCE_ROOT
Answers equal those of `weft run`, whatever else is in the batch; wrong requests, deadlines, a full queue, many connections, one wrong row in a
batch, the end by SIGTERM. No times are tested."""
import http.client
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

weft, root = sys.argv[1], pathlib.Path(sys.argv[2])
cc = os.environ.get("CC", "cc").split()
bad = 0
# A row: 4 indices into a table of 10 rows; an index that is out of range fails the check.
PICK = "graph @pick(%i: i64[B, 4], %t: f32[B, 10]) where 1 <= B <= 64 {\n  %y = aten.gather(%t, %i, dim=1)\n  return %y\n}"
LONG = "graph @f(%x: f32[B, 1024]) where 1 <= B <= 64 {\n  %w = aten.full(size=[1024, 1024], fill_value=0.01, dtype=f32)\n" + "".join(
    f"  %y{k + 1} = aten.matmul(%{f'y{k}' if k else 'x'}, %w)\n" for k in range(200)) + "  return %y200\n}"


def expect(right, what):
    global bad
    if not right:
        bad += 1
        print(f"FAIL {what}")


class Served:
    def __init__(self, folder, model, *options):
        self.process = subprocess.Popen([f"{folder}/server", model, "--port", "0", *map(str, options)], stdout=subprocess.PIPE, text=True)
        self.said = self.process.stdout.readline()
        self.port = int(self.said.split()[-1])

    def post(self, body, connection=None, **headers):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("POST", "/predict", body, {k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        return r.status, r.read()

    def get(self, path):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("GET", path)
        r = c.getresponse()
        return r.status, r.read().decode()

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            got = b""
            while part := s.recv(65536):
                got += part
            return got

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def row(*indices):
    return struct.pack("<4q", *indices) + struct.pack("<10f", *range(10))


def answers(s):
    """Many threads with rows of their own, among them wrong ones: each gets its own answer."""
    wrong = []

    def client(t):
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
        for k in range(50):
            i = [(t + k + d) % 10 for d in range(4)]
            if k % 10 == 9:
                status, body = s.post(row(0, 1, 2, 77), c)
                if status != 422 or b"77" not in body:
                    wrong.append((status, body))
            else:
                status, body = s.post(row(*i), c)
                if status != 200 or struct.unpack("<4f", body) != tuple(map(float, i)):
                    wrong.append((status, body))
    threads = [threading.Thread(target=client, args=(t,)) for t in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect(not wrong, f"answers of many clients: {wrong[:3]}")


def protocol(s):
    ok = b"HTTP/1.1 200 OK"
    expect(s.get("/health") == (200, "ok\n"), "health")
    expect(s.get("/other")[0] == 404, "another path")
    expect(s.post(b"abc")[0] == 400 and b"expected 72" in s.post(b"abc")[1], "a body that is too short")
    expect(s.post(b"a" * 100000)[0] == 400, "a body that is too long")
    expect(s.raw(b"POST /predict HTTP/1.1\r\n" + b"a" * 5000).startswith(b"HTTP/1.1 431"), "a header that is too long")
    for length in (b"72abc", b"72, 72", b"-72", b"18446744073709551688", b"72\r\nContent-Length: 72"):
        expect(s.raw(b"POST /predict HTTP/1.1\r\nContent-Length: " + length + b"\r\n\r\n" + row(1, 2, 3, 4)).startswith(b"HTTP/1.1 400"), f"{length}")
    expect(s.raw(b"HEAD /health HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\n"), "HEAD")
    expect(s.post(row(1, 2, 3, 4), X_Deadline_Ms="9223372036854775807")[0] == 200, "a deadline that is far away")
    expect(s.raw(b"\r\n\r\n").startswith(b"HTTP/1.1 404"), "an empty request")
    expect(s.raw(b"POST /predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").startswith(b"HTTP/1.1 400"), "chunks")
    request = b"POST /predict HTTP/1.1\r\nContent-Length: 72\r\n\r\n" + row(1, 2, 3, 4)
    expect(s.raw(request * 20).count(ok) == 20, "20 requests at once on one connection")
    with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:  # byte by byte
        for k in range(len(request)):
            c.sendall(request[k:k + 1])
        expect(c.recv(65536).startswith(ok), "a request in pieces")
    for cut in (0, 1, 30, len(request) - 1):  # clients that go away
        socket.create_connection(("127.0.0.1", s.port)).sendall(request[:cut])
    c = socket.create_connection(("127.0.0.1", s.port))
    c.sendall(request)
    c.close()
    expect(s.post(row(5, 5, 5, 5))[0] == 200, "a request behind them")
    expect(s.raw(b"POST /predict HTTP/1.0\r\nContent-Length: 72\r\n\r\n" + row(1, 2, 3, 4)).count(b"Connection: close") == 1, "HTTP/1.0")


def metric(s, name):
    return float(re.search(rf"^{re.escape(name)} (\S+)$", s.get("/metrics")[1], re.M)[1])


def limits(s):
    """A slow model, a queue of 4: some are refused, those with a deadline end early, all are counted."""
    got = []

    def client(k):
        got.append(s.post(bytes(4096), X_Deadline_Ms="1" if k % 2 else "60000")[0])
    threads = [threading.Thread(target=client, args=(k,)) for k in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect(set(got) <= {200, 503, 504} and 200 in got and 503 in got and 504 in got, f"statuses of a slow model: {sorted(got)}")
    counted = sum(metric(s, f'requests_total{{outcome="{o}"}}') for o in ("answered", "late", "wrong", "stopped", "refused"))
    expect(counted == 40, f"{counted} requests are counted")
    expect(metric(s, "queue_length") == 0 and metric(s, "model_calls_busy") == 0, "what is left")


def bounded(s):
    """A model of at most 2 rows behind a larger --batch: batches have 2."""
    got = []
    threads = [threading.Thread(target=lambda: got.append(s.post(row(1, 2, 3, 4))[0])) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect(got == [200] * 12, f"a model with a bounded batch: {got}")
    expect(s.end() == 0, "the end")


def stops(s):
    """Requests in the queue are answered before the server ends."""
    got = []

    def client():
        try:
            got.append(s.post(bytes(4096))[0])
        except ConnectionError:  # not read when the server ended
            pass
    threads = [threading.Thread(target=client) for _ in range(3)]
    for t in threads:
        t.start()
    until = time.monotonic() + 30
    while metric(s, "model_calls_busy") + metric(s, "queue_length") == 0 and not got and time.monotonic() < until:
        time.sleep(0.002)
    code = s.end()
    for t in threads:
        t.join()
    expect(code == 0 and set(got) <= {200, 503} and 200 in got, f"the end: exit status {code}, {got}")


with tempfile.TemporaryDirectory() as folder:
    source = root / "examples/server"
    build = [*cc, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror", "-I",
             root / "include"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if "--sanitize" in sys.argv else []
    subprocess.run([*build, *sanitizers, source / "server.c", source / "batch.c", "-o", f"{folder}/server", "-ldl", "-pthread"], check=True)
    subprocess.run([*build, source / "load.c", "-o", f"{folder}/load", "-lm"], check=True)
    for name, text in ("pick", PICK), ("long", LONG), ("two", PICK.replace("<= 64", "<= 2")):
        pathlib.Path(f"{folder}/{name}.ir").write_text(text)
        subprocess.run([weft, "compile", f"{folder}/{name}.ir", "-o", f"{folder}/{name}.so"], check=True, stdout=subprocess.DEVNULL)
    s = Served(folder, f"{folder}/pick.so", "--batch", 8)
    expect(s.said.startswith("a row: 72 bytes in, 16 out"), s.said)
    answers(s)
    protocol(s)
    load = subprocess.run([f"{folder}/load", str(s.port), "72", "200", "0.5"], capture_output=True, text=True)
    expect("failed 0 " in load.stdout, f"load: {load.stdout}{load.stderr}")
    expect(metric(s, 'requests_total{outcome="wrong"}') == 60, "wrong rows are counted")
    expect(s.end() == 0, "the end")
    bounded(Served(folder, f"{folder}/two.so", "--batch", 16, "--wait-us", 20000))
    s = Served(folder, f"{folder}/long.so", "--batch", 2, "--queue", 4)
    limits(s)
    stops(s)
    for model, option in (f"{folder}/none.so", "8"), (f"{folder}/pick.so", "0"):
        wrong = subprocess.run([f"{folder}/server", model, "--batch", option], capture_output=True, text=True)
        expect(wrong.returncode in (1, 2) and wrong.stderr, f"{model} {option}: {wrong.returncode}")
sys.exit(bad != 0)
