# SPDX-License-Identifier: Apache-2.0
"""sonde mcp and /mcp of sonde serve, asked by the clients that others wrote (make long-mcp): PyPI's mcp and both of npm, each fetched for the test into a folder
of its own. Over standard input and over HTTP, each holds an investigation: what tools there are, the page of facts of a spike's minute, and the function behind it."""
import json
import os
import subprocess
import sys
import time

import livedin
import pytest
from conftest import BIN
from serving import Serve

pytestmark = pytest.mark.long
PYTHON = """
import anyio, json, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
async def main():
    where = sys.argv[1] if sys.argv[1].startswith("http") else stdio_client(StdioServerParameters(command=sys.argv[1], args=["mcp", "--store", sys.argv[2]]))
    async with Client(where) as c:
        tools = [t.name for t in (await c.list_tools()).tools]
        page = await c.call_tool("investigate", {"from": sys.argv[3], "to": sys.argv[4]})
        stacks = await c.call_tool("cpu_stacks", {"from": sys.argv[3], "to": sys.argv[4], "what": "restic"})
        schema = await c.read_resource("sonde://schema")
        print(json.dumps({"tools": tools, "page": page.structured_content, "stacks": stacks.structured_content, "schema": schema.contents[0].text}))
anyio.run(main)
"""
NODE = """
import { Client } from "%(package)s%(client)s";
import { StdioClientTransport } from "%(package)s%(stdio)s";
import { StreamableHTTPClientTransport } from "%(package)s%(http)s";
const [command, store, from, to] = process.argv.slice(2);
const c = new Client({ name: "t", version: "0" }, %(options)s);
await c.connect(command.startsWith("http") ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args: ["mcp", "--store", store] }));
const call = async (name, more) => (await c.callTool({ name, arguments: { from, to, ...more } })).structuredContent;
const out = { tools: (await c.listTools()).tools.map((t) => t.name), page: await call("investigate", {}), stacks: await call("cpu_stacks", { what: "restic" }),
              schema: (await c.readResource({ uri: "sonde://schema" })).contents[0].text };
console.log(JSON.stringify(out));
await c.close();
"""
NPM = {
    "@modelcontextprotocol/sdk": {"client": "/client/index.js", "stdio": "/client/stdio.js", "http": "/client/streamableHttp.js", "options": "{}"},
    "@modelcontextprotocol/client": {"client": "", "stdio": "/stdio", "http": "", "options": '{ versionNegotiation: { mode: "auto" } }'},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    end = int(time.time()) // 10 * 10
    return livedin.make(str(tmp_path_factory.mktemp("clients") / "store"), end, []), end


def run(argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, **more)


def fetched(done, what):
    if done.returncode:
        pytest.skip(f"{what} is not to be had here: {done.stderr.strip().splitlines()[-1:]}")


def investigate(argv, made, cwd):
    """Over standard input, then over HTTP."""
    store, end = made
    server = Serve(store, "--store", store)
    try:
        for where in (os.path.join(BIN, "sonde"), f"{server.url}mcp"):
            hold(run([*argv, where, store, str(end - 660), str(end - 600)], cwd=cwd))
    finally:
        server.close()


def hold(done):
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert {"overview", "investigate", "requests", "sql"} <= set(got["tools"])
    assert "restic" in json.dumps(got["page"]["changes"])
    assert got["stacks"]["functions"]["rows"][0]["function"] == "zstd_encode"
    assert "cpu_samples:" in got["schema"]
    assert sum(len(json.dumps(got[k])) for k in ("page", "stacks")) <= 60000


def test_the_client_of_pypi(made, tmp_path):
    fetched(run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")]), "a venv")
    site = next((tmp_path / "v" / "lib").iterdir()) / "site-packages"
    fetched(run([sys.executable, "-m", "pip", "install", "-q", "--target", str(site), "mcp"]), "PyPI's mcp")
    (tmp_path / "ask.py").write_text(PYTHON)
    investigate([str(tmp_path / "v" / "bin" / "python3"), "ask.py"], made, tmp_path)


@pytest.mark.parametrize("package", NPM)
def test_a_client_of_npm(made, tmp_path, package):
    try:
        fetched(run(["npm", "install", "--silent", "--no-fund", "--no-audit", package], cwd=tmp_path), package)
    except FileNotFoundError:
        pytest.skip("npm is missing: apt-get install npm")
    (tmp_path / "ask.mjs").write_text(NODE % {"package": package, **NPM[package]})
    investigate(["node", "ask.mjs"], made, tmp_path)
