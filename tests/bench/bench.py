#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What nightclerk costs, as ratios: bare, observed and, where installed, other tools, turn by turn in one run.

usage: bench.py [--rounds N] [--seconds S] [--only NAME,...], as root; figures go to build/bench/.

Everything runs in a network namespace of its own. A workload is a program that
prints one figure; each round plays it once under every tool, and the first
round is thrown away: it warms files and memory. Ratio = median(tool) / median(bare).
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "..", "build")
NIGHTCLERK = os.path.abspath(os.path.join(BUILD, "nightclerk"))
TALK = os.path.abspath(os.path.join(BUILD, "tests", "bench", "talk"))
OUT = os.path.abspath(os.path.join(BUILD, "bench"))
PORT, REDIS_PORT = 8080, 6399

NGINX = """
worker_processes 1; daemon off; pid {dir}/pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; client_max_body_size 100m; client_body_buffer_size 2m;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port}; default_type application/json;
    location / {{ return 200 '{answer}'; }} }}
}}
"""
ANSWER = '{"id":"ch_123456789","object":"charge","amount":2500,"currency":"usd","note":"' + "y" * 210 + '"}'

WRK = """
local n, pad = 0, string.rep("x", %d)
local distinct = %s
request = function()
  if distinct then n = n + 1 end
  local body = string.format('{"amount":%%d,"currency":"usd","customer":"cus_%%08d","description":"%%s"}', n, n, pad)
  return wrk.format("POST", "/v1/charges", {["Content-Type"] = "application/json"}, body)
end
"""


class Workload:
    """argv(directory) is the program; figure(stdout) its figure, more is better unless `less`; calls(stdout) how
    many exchanges it made, None where they are not HTTP."""

    def __init__(self, name, argv, figure, calls=None, less=False, tools=("nightclerk",), unit="/s", before=None):
        self.name, self.argv, self.figure, self.calls = name, argv, figure, calls
        self.less, self.tools, self.unit, self.before = less, tools, unit, before


def wrk(name, pad, distinct, tools=("nightclerk",), connections=16):
    def argv(directory, seconds):
        script = os.path.join(directory, name.replace(" ", "-") + ".lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(WRK % (pad, "true" if distinct else "false"))
        return ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", script, f"http://127.0.0.1:{PORT}/"]

    return Workload(name, argv,
                    lambda out: float(re.search(r"Requests/sec:\s+([0-9.]+)", out)[1]),
                    lambda out: int(re.search(r"(\d+) requests in", out)[1]), tools=tools)


def talk(name, what, count, **more):
    return Workload(name, lambda _, __: [TALK, what, str(count)], lambda out: float(out.split()[0]),
                    lambda _: count, **more)


def redis(name, tools):
    return Workload(name, lambda _, __: ["redis-benchmark", "-p", str(REDIS_PORT), "-q", "-n", "200000", "-c", "16",
                                         "-t", "get", "--csv"],
                    lambda out: float(out.strip().splitlines()[-1].split('","')[1].strip('"')), tools=tools)


WORKLOADS = [
    wrk("300 B POST", 210, True, tools=("nightclerk", "tcpdump", "tshark", "strace", "httpry", "ngrep")),
    wrk("300 B POST, all equal", 210, False),
    wrk("4 KiB POST", 4000, True),
    wrk("64 KiB POST", 65400, True),
    wrk("1 MiB POST", 1048400, True, connections=4),
    talk("stream of 1,000 chunks", "stream", 300),
    talk("one sequential client, p50", "sequential", 40000, less=True, unit="us"),
    redis("redis in scope", ("nightclerk",)),
    redis("redis out of scope", ("nightclerk beside",)),
]


class Watched:
    """Reads what nightclerk used, while it lives."""

    def __init__(self, pid):
        self.pid, self.cpu_s, self.rss_kib, self.anon_kib = pid, 0.0, 0, 0
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        try:
            while True:
                with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as file:
                    self.cpu_s = int(file.read().split()[0]) / 1e9
                with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                    status = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
                if "VmHWM" not in status:
                    return
                self.rss_kib = int(status["VmHWM"].split()[0])
                self.anon_kib = max(self.anon_kib, int(status["RssAnon"].split()[0]))
                time.sleep(0.02)
        except (OSError, ValueError, IndexError):
            return


def wait_for_output(process, stream):
    return getattr(process, stream).readline()


class Bench:
    def __init__(self, options):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="nightclerk-bench-")
        self.ended = []
        self.results = {}

    def start(self, argv, **more):
        process = subprocess.Popen(argv, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more})
        self.ended.append(process)
        return process

    def servers(self):
        with open(os.path.join(self.directory, "nginx.conf"), "w", encoding="utf-8") as file:
            file.write(NGINX.format(dir=self.directory, port=PORT, answer=ANSWER))
        self.start(["nginx", "-c", os.path.join(self.directory, "nginx.conf")])
        if shutil.which("redis-server"):
            self.start(["redis-server", "--port", str(REDIS_PORT), "--bind", "127.0.0.1", "--save", "",
                        "--appendonly", "no", "--dir", self.directory])
        time.sleep(1)

    def stop(self):
        for process in reversed(self.ended):
            if process.poll() is None:
                process.terminate()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    # ---- one turn ----

    def bare(self, argv):
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()

    def nightclerk(self, workload, argv):
        ledger = os.path.join(self.directory, "ledger.jsonl")
        process = subprocess.Popen([NIGHTCLERK, "run", "--ledger", ledger, "--", *argv],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        watched = Watched(process.pid)
        out, err = process.communicate()
        watched.thread.join()
        out = out.decode()
        facts = {"cpu_s": watched.cpu_s, "rss_mib": watched.rss_kib / 1024, "anon_mib": watched.anon_kib / 1024,
                 "exit": process.returncode, "said": err.decode()}
        if workload.calls:
            with open(ledger, "rb") as file:
                facts["lines"] = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
            facts["calls"] = workload.calls(out)
        os.unlink(ledger)
        return out, facts

    def beside(self, argv):
        """nightclerk watches something else while the workload runs out of its scope."""
        process = self.start([NIGHTCLERK, "run", "--quiet", "--ledger", os.path.join(self.directory, "beside.jsonl"),
                              "--", "sh", "-c", "echo ready; read line"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_for_output(process, "stdout")
        out = self.bare(argv)
        process.communicate(b"\n")
        return out

    def tool(self, name, argv):
        file = os.path.join(self.directory, "tool.out")
        if name == "strace":
            out = subprocess.run(["strace", "-f", "-e", "trace=network,read,write", "-o", file, *argv],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
            os.unlink(file)
            return out
        command = {"tcpdump": ["tcpdump", "-i", "lo", "-w", file],
                   "tshark": ["tshark", "-i", "lo", "-Y", "http", "-T", "fields", "-e", "http.request.uri"],
                   "httpry": ["httpry", "-i", "lo", "-o", file],
                   "ngrep": ["ngrep", "-d", "lo", "-q", "POST", "port", str(PORT)]}[name]
        with open(os.path.join(self.directory, "tool.log"), "wb") as log:
            process = self.start(command, stdout=log if name in ("tshark", "ngrep") else subprocess.DEVNULL)
            time.sleep(1.5 if name == "tshark" else 0.5)
            out = self.bare(argv)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if os.path.exists(file):
            os.unlink(file)
        return out

    def turn(self, workload, tool, argv):
        if tool == "bare":
            return workload.figure(self.bare(argv)), {}
        if tool == "nightclerk":
            out, facts = self.nightclerk(workload, argv)
            return workload.figure(out), facts
        if tool == "nightclerk beside":
            return workload.figure(self.beside(argv)), {}
        return workload.figure(self.tool(tool, argv)), {}

    # ---- all of them ----

    def play(self, workload):
        argv = workload.argv(self.directory, self.options.seconds)
        if not shutil.which(argv[0]):
            print(f"{workload.name}: skipped, {argv[0]} is not installed")
            return
        tools = ["bare"] + [t for t in workload.tools if t.startswith("nightclerk") or shutil.which(t)]
        figures = {tool: [] for tool in tools}
        facts = []
        for number in range(self.options.rounds + 1):
            for tool in tools:
                figure, more = self.turn(workload, tool, argv)
                if number == 0:
                    continue
                figures[tool].append(figure)
                if more:
                    facts.append(more)
        self.results[workload.name] = self.tell(workload, figures, facts)

    def tell(self, workload, figures, facts):
        bare = statistics.median(figures["bare"])
        result = {"unit": workload.unit, "tools": {}}
        for tool, values in figures.items():
            median = statistics.median(values)
            entry = {"median": median, "min": min(values), "max": max(values), "values": values}
            entry["added" if workload.less else "ratio"] = median - bare if workload.less else median / bare
            result["tools"][tool] = entry
            rate = f"+{median - bare:.2f} {workload.unit}" if workload.less else f"ratio {median / bare:.3f}"
            print(f"{workload.name:28} {tool:18} {median:12.1f} {workload.unit:3} {rate:14} "
                  f"({min(values):.1f} to {max(values):.1f})")
        calls = sum(fact.get("calls", 0) for fact in facts)
        if calls:
            lines, cpu = sum(fact["lines"] for fact in facts), sum(fact["cpu_s"] for fact in facts)
            result["recorded"] = min(1.0, lines / calls)
            result["cpu_s_per_100k"] = cpu / lines * 1e5 if lines else None
            result["rss_mib"] = max(fact["rss_mib"] for fact in facts)
            result["anon_mib"] = max(fact["anon_mib"] for fact in facts)
            result["exits"] = sorted({fact["exit"] for fact in facts})
            result["said"] = sorted({fact["said"] for fact in facts if fact["exit"] not in (0, 10)})
            print(f"{'':28} recorded {result['recorded'] * 100:.3f} %, {result['cpu_s_per_100k']:.3f} CPU s per 100,000, "
                  f"peak RSS {result['rss_mib']:.0f} MiB (anonymous {result['anon_mib']:.0f}), exit {result['exits']}")
            for said in result["said"]:
                print(f"{'':28} {said.strip().splitlines()[-1]}")
        sys.stdout.flush()
        return result


def svg(results):
    rows = [(name, tool, entry["ratio"]) for name, result in results.items()
            for tool, entry in result["tools"].items() if tool != "bare" and "ratio" in entry]
    height = 22 * len(rows) + 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" font-family="sans-serif" '
             'font-size="12">', '<text x="10" y="18">throughput under a tool / bare, medians of one run</text>']
    for i, (name, tool, ratio) in enumerate(rows):
        y = 30 + 22 * i
        colour = "#2b6cb0" if tool.startswith("nightclerk") else "#a0aec0"
        parts.append(f'<text x="10" y="{y + 14}">{name}, {tool}</text>'
                     f'<rect x="300" y="{y + 2}" width="{min(ratio, 1.1) * 380:.0f}" height="16" fill="{colour}"/>'
                     f'<text x="{306 + min(ratio, 1.1) * 380:.0f}" y="{y + 14}">{ratio:.2f}</text>')
    parts.append('<line x1="680" y1="26" x2="680" y2="%d" stroke="black" stroke-dasharray="3"/></svg>' % (height - 8))
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if os.environ.get("NIGHTCLERK_BENCH_INSIDE") != "yes":
        if os.geteuid() != 0:
            sys.exit("bench: this needs root")
        os.environ["NIGHTCLERK_BENCH_INSIDE"] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    wanted = [name for name in options.only.split(",") if name]
    bench = Bench(options)
    try:
        bench.servers()
        for workload in WORKLOADS:
            if not wanted or any(name in workload.name for name in wanted):
                bench.play(workload)
    finally:
        bench.stop()
    os.makedirs(OUT, exist_ok=True)
    facts = {"kernel": os.uname().release, "cpus": os.cpu_count(), "load": os.getloadavg(),
             "rounds": options.rounds, "seconds": options.seconds, "workloads": bench.results}
    with open(os.path.join(OUT, "bench.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    with open(os.path.join(OUT, "bench.svg"), "w", encoding="utf-8") as file:
        file.write(svg(bench.results))
    print(f"load average {facts['load'][0]:.1f}; figures are in build/bench/bench.json and bench.svg")


main()
