#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Clients from npm against a server's own log, as in 30-clients.t; 35-packages.t installs them."""

import os

from clients import compare, json_came
from harness import BUILD, Skip, fact, play

INSTALLED = os.path.join(BUILD, "tests", "live", "packages")


def client(live, name, script, want_count):
    if not os.path.isdir(os.path.join(INSTALLED, "node_modules", name)):
        raise Skip(f"{name} is not installed: see 35-packages.t")
    # Beside node_modules, where import finds them.
    path = os.path.join(INSTALLED, f"client-{name}.mjs")
    with open(path, "w", encoding="utf-8") as file:
        file.write("const { URL: url, BODY: body } = process.env;\n" + script)
    json_came(compare(live, ["node", path], want_count))


@fact
def axios(live):
    client(live, "axios", """
import axios from "axios";
import { Readable } from "node:stream";
await axios.post(url, body, { headers: { "Content-Type": "application/json", "Idempotency-Key": "k-1" } });
await axios.post(url, { a: 1.5 });
await axios.post(url, new URLSearchParams({ b: "x y", a: "ü" }));
await axios.postForm(url, { one: "1", file: Buffer.from("hello") });
await axios.put(url, Readable.from(["one", "two", "three"]), { maxRedirects: 0 });
await axios.get(url, { params: { q: "x y" } });
await axios.delete(url);
""", 7)


@fact
def got(live):
    client(live, "got", """
import got from "got";
import { Readable } from "node:stream";
await got.post(url, { body, headers: { "Content-Type": "application/json", "Idempotency-Key": "k-1" } });
await got.post(url, { json: { a: 1.5 } });
await got.post(url, { form: { b: "x y", a: "ü" } });
await got.put(url, { body: Readable.from(["one", "two", "three"]) });
await got(url, { searchParams: { q: "x y" } });
await got.head(url);
""", 6)


@fact
def undici(live):
    client(live, "undici", """
import { Client, fetch, request } from "undici";
import { Readable } from "node:stream";
const read = ({ body }) => body.text();
await read(await request(url, { method: "POST", body, headers: { "Content-Type": "application/json", "Idempotency-Key": "k-1" } }));
await read(await request(url, { method: "PUT", body: Readable.from(["one", "two", "three"]) }));
await read(await request(url, { query: { q: "x y" } }));
await fetch(url, { method: "POST", body: new URLSearchParams({ b: "x y" }) }).then(answer => answer.text());
const { origin, pathname } = new URL(url), pipelined = new Client(origin, { pipelining: 4 });
await Promise.all([1, 2, 3, 4].map(n => pipelined.request({ path: `${pathname}?n=${n}`, method: "GET" }).then(read)));
await pipelined.close();
""", 8)


play()
