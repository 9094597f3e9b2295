"""What holds for every route: transport, limits, keys, and clients that misbehave."""
import json
import socket
import time

import httpx2 as httpx
import pytest
from conftest import ADMIN_KEY, API_KEY, Server

LONG = {"prompt": "Once upon a time", "max_tokens": 900, "ignore_eos": True}


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def raw(server, data):
    """Sends bytes, reads to the end of the connection."""
    with connect(server) as s:
        s.sendall(data)
        out = b""
        while chunk := s.recv(65536):
            out += chunk
        return out


def post(path, body, extra=""):
    text = json.dumps(body).encode() if not isinstance(body, bytes) else body
    head = (f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {API_KEY}\r\n{extra}"
            f"Content-Length: {len(text)}\r\n\r\n")
    return head.encode() + text


def running(http):
    h = http.get("/health").json()
    return h["running"] + h["waiting"]


def wait_idle(http, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if running(http) == 0:
            return True
        time.sleep(0.02)
    return False


def test_keep_alive_head_and_options(server):
    with connect(server) as s:
        f = s.makefile("rb")
        for method in ("GET", "HEAD", "OPTIONS", "GET"):
            s.sendall(f"{method} /health/ HTTP/1.1\r\nHost: x\r\nOrigin: http://page\r\n"
                      "Access-Control-Request-Headers: authorization,x-stainless-os\r\n"
                      "X-Request-Id: abc-1\r\n\r\n".encode())
            status, headers = f.readline().split(b" ")[1], {}
            while (line := f.readline().strip()):
                key, value = line.decode().split(": ", 1)
                headers[key.lower()] = value
            assert status == (b"204" if method == "OPTIONS" else b"200")
            assert headers["access-control-allow-origin"] == "*" and headers["x-request-id"] == "abc-1"
            if method == "OPTIONS":
                assert headers["access-control-allow-headers"] == "authorization,x-stainless-os"
            if method == "GET":
                assert json.loads(f.read(int(headers["content-length"])))["status"] == "healthy"


def test_expect_continue(server):
    with connect(server) as s:
        body = b'{"text": "a"}'
        s.sendall(f"POST /v1/token/encode HTTP/1.1\r\nHost: x\r\nx-api-key: {API_KEY}\r\nExpect: 100-continue\r\n"
                  f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
        assert s.recv(100).startswith(b"HTTP/1.1 100")
        s.sendall(body)
        assert s.recv(1000).startswith(b"HTTP/1.1 200")


def test_routes_without_v1_and_wrong_methods(http):
    assert http.get("/models").json()["object"] == "list"
    assert http.post("/chat/completions", json={}).status_code == 400
    r = http.get("/v1/chat/completions")
    assert r.status_code == 405 and r.headers["allow"] == "POST"
    assert http.get("/v1/audio/speech").status_code == 404


@pytest.mark.parametrize("data,status", [
    (b"nonsense\r\n\r\n", b"400"),
    (b"GET / HTTP/9.9\r\n\r\n", b"400"),
    (b"GET /health HTTP/1.1\r\nX: " + b"a" * 100000 + b"\r\n\r\n", b"431"),
    (post("/v1/completions", b"{" + b" " * (2 << 20) + b"}"), b"413"),
    (b"POST /v1/completions HTTP/1.1\r\nContent-Length: -4\r\n\r\n", b"400"),
])
def test_malformed_http(server, data, status):
    answer = raw(server, data)
    assert answer.split(b" ")[1] == status, answer[:200]


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b'{"prompt": "a",}', b'{"prompt": "a", "prompt": "b"}',
    b'{"prompt": "\xff\xfe"}', b'{"prompt": "\\ud800"}', b'{"a": ' + b"[" * 100000, b'{"prompt": "a", "n": 1e400}',
    b'{"prompt": "a", "max_tokens": 99999999999999999999}', b'{"prompt": [[]]}', b'{"prompt": [-1]}',
    b'{"prompt": [1.5]}', b'{"prompt": [4096]}', b'{"prompt": {}}', b"{}",
])
def test_bad_bodies(http, body):
    r = http.post("/v1/completions", content=body)
    assert r.status_code == 400 and r.json()["error"]["type"] == "invalid_request_error", r.text


def test_body_type_does_not_matter(http):
    r = http.post("/v1/token/encode", content=b'{"text": "The cat"}', headers={"Content-Type": "text/plain"})
    tokens = r.json()["tokens"]
    assert http.post("/v1/token/decode", json={"tokens": tokens}).json()["text"] == "The cat"
    assert http.post("/tokenize", json={"content": "The cat"}).json()["tokens"] == tokens
    assert http.post("/detokenize", json={"tokens": tokens}).json()["content"] == "The cat"


def test_keys(server, http):
    base = httpx.Client(base_url=server.url)
    assert base.get("/v1/models").status_code == 401
    assert base.get("/health").status_code == 200
    for headers in ({"x-api-key": API_KEY}, {"api-key": API_KEY}, {"x-admin-key": ADMIN_KEY},
                    {"Authorization": "Bearer " + ADMIN_KEY}):
        assert base.get("/v1/models", headers=headers).status_code == 200
    assert http.post("/v1/model/unload").status_code == 403
    assert http.get("/v1/auth/permission").json() == {"permission": "api"}
    admin = base.get("/v1/auth/permission", headers={"x-admin-key": ADMIN_KEY}).json()
    assert admin == {"permission": "admin"}


def test_closing_the_connection_cancels(server, http):
    # So many long answers that they cannot end by themselves before the client leaves.
    body = {**LONG, "n": 64}
    for stream in (True, False):
        assert wait_idle(http, 60)
        with connect(server) as s:
            s.sendall(post("/v1/completions", {**body, "stream": stream}))
            end, seen = time.monotonic() + 30, 0
            while seen == 0 and time.monotonic() < end:
                seen = running(http)
            assert seen > 0
        assert wait_idle(http, 60)
        assert 'finished_reason="abort"} 0\n' not in http.get("/metrics").text


def test_slow_reader_hurts_nobody(server, http):
    with connect(server) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(post("/v1/completions", {**LONG, "n": 4, "stream": True}))
        time.sleep(0.3)
        start = time.monotonic()
        http.post("/v1/completions", json={"prompt": "a", "max_tokens": 4}).raise_for_status()
        assert time.monotonic() - start < 20
        assert wait_idle(http, 60)
        out = b""
        while b"[DONE]" not in out:
            chunk = s.recv(65536)
            assert chunk
            out += chunk
        assert out.count(b'"finish_reason":"length"') == 4


def test_idle_connections_cost_nothing(server, http):
    idle = [connect(server) for _ in range(200)]
    half = connect(server)
    half.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Le")
    assert http.get("/health").status_code == 200
    for s in idle + [half]:
        s.close()


def test_pipelined_requests(server):
    data = b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + b"GET /ping HTTP/1.1\r\nConnection: close\r\n\r\n"
    assert raw(server, data).count(b"HTTP/1.1 200") == 4


def test_old_http(server):
    answer = raw(server, post("/v1/completions", {**LONG, "max_tokens": 4, "stream": True}).replace(b"1.1", b"1.0", 1))
    assert b"chunked" not in answer and answer.endswith(b"data: [DONE]\n\n")


def test_metrics(http):
    text = http.get("/metrics").text
    for name in ("vllm:num_requests_running", "vllm:kv_cache_usage_perc", "vllm:prompt_tokens_total",
                 "vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_bucket",
                 "vllm:inter_token_latency_seconds_sum", "vllm:e2e_request_latency_seconds_count",
                 "vllm:request_success_total", "vllm:prefix_cache_hits_total", "vllm:num_preemptions_total"):
        assert f'{name}{{model_name="tales-9m"' in text, name
    types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_prefix_cache_is_counted(http):
    prompt = "The fox and the hen. " * 100
    for _ in range(2):
        r = http.post("/v1/completions", json={"prompt": prompt, "max_tokens": 1})
    assert r.json()["usage"]["prompt_tokens_details"]["cached_tokens"] >= 256


def test_load_and_unload():
    server = Server("--admin-key", ADMIN_KEY, model=False)
    try:
        http = httpx.Client(base_url=server.url, headers={"x-admin-key": ADMIN_KEY}, timeout=60)
        assert http.post("/v1/completions", json={"prompt": "a"}).status_code == 503
        assert http.get("/v1/model").status_code == 503
        assert [m["id"] for m in http.get("/v1/models").json()["data"]] == ["tales-9m"]
        assert http.post("/v1/model/load", json={"model_name": "../etc"}).status_code == 400
        assert http.post("/v1/model/load", json={}).json()["error"]["param"] == "model_name"
        with http.stream("POST", "/v1/model/load", json={"model_name": "tales-9m", "max_seq_len": 512}) as r:
            events = [json.loads(line[6:]) for line in r.iter_lines() if line.startswith("data: ")]
        assert events[-1]["status"] == "finished" and events[0]["status"] == "processing"
        assert http.get("/v1/model").json()["parameters"]["max_seq_len"] == 512
        assert http.post("/v1/completions", json={"prompt": "a", "max_tokens": 2}).status_code == 200
        assert http.post("/v1/model/unload").status_code == 200
        assert http.post("/v1/model/unload").status_code == 503
    finally:
        assert server.stop() == 0


def test_sigterm_finishes_running_answers():
    server = Server()
    with connect(server) as s:
        s.sendall(post("/v1/completions", {**LONG, "max_tokens": 300, "stream": True}))
        out = s.recv(4096)
        server.process.terminate()
        while chunk := s.recv(65536):
            out += chunk
    assert b'"finish_reason":"length"' in out and b"data: [DONE]" in out
    assert server.process.wait(timeout=30) == 0


def test_port_in_use_is_an_error(server):
    import subprocess
    from conftest import os, ROOT
    program = os.environ.get("EXL3_PROGRAM", str(ROOT / "build/dev/bin/exl3"))
    r = subprocess.run([program, "serve", "--port", str(server.port)], capture_output=True, text=True, timeout=60)
    assert r.returncode == 1 and str(server.port) in r.stderr and r.stderr.startswith("error: ")


def test_ping_keeps_a_silent_stream_open(server, http):
    # Many answers at once keep the last ones waiting for longer than the ping interval of a second.
    body = {**LONG, "n": 64, "stream": True}
    with connect(server) as a, connect(server) as b:
        a.sendall(post("/v1/completions", body))
        a.sendall(b"")
        time.sleep(0.2)
        b.sendall(post("/v1/completions", {**LONG, "max_tokens": 1, "stream": True, "priority": -1}))
        out = b""
        while b"[DONE]" not in out:
            out += b.recv(65536)
    assert b"text/event-stream" in out and b"X-Accel-Buffering: no" in out
    assert wait_idle(http, 30)
