"""Starts the server once for all tests. EXL3_PROGRAM names the program; the model is the bundled one."""
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
API_KEY, ADMIN_KEY = "test-key", "test-admin-key"


class Server:
    """A running `exl3 serve`."""

    def __init__(self, *flags, model=True):
        program = os.environ.get("EXL3_PROGRAM", str(ROOT / "build/dev/bin/exl3"))
        command = [program, "serve", "--port", "0", "--threads", "1", "--template", str(HERE / "chatml.jinja")]
        if model:
            command += ["-m", str(ROOT / "models/tales-9m")]
        self.process = subprocess.Popen(command + list(flags), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        line = self.process.stdout.readline()
        match = re.match(r"listening on (http://.*:(\d+))", line)
        assert match, f"found {line!r} on the server's stdout"
        self.url, self.port = match[1], int(match[2])

    def stop(self):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def memory_mb(self):
        """Resident memory."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024


@pytest.fixture(scope="session")
def server():
    s = Server("--api-key", API_KEY, "--admin-key", ADMIN_KEY, "--config", str(HERE / "server.yml"))
    yield s
    assert s.stop() == 0


@pytest.fixture(scope="session")
def openai_client(server):
    import openai

    return openai.OpenAI(base_url=server.url + "/v1", api_key=API_KEY, max_retries=0, timeout=120)


@pytest.fixture(scope="session")
def anthropic_client(server):
    import anthropic

    return anthropic.Anthropic(base_url=server.url, api_key=API_KEY, max_retries=0, timeout=120)


@pytest.fixture(scope="session")
def http(server):
    import httpx2 as httpx

    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {API_KEY}"}, timeout=120) as client:
        yield client


def pytest_configure(config):
    sys.path.insert(0, str(HERE))
