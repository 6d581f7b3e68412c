#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares our HTTP/1.x framing with that of node's server and client and of
Python's http.server and http.client, on generated valid and damaged streams.

    framing_oracle.py [COUNT [SEED]]

Every reader says which whole messages a stream holds (method and target or
status, length and SHA-256 of the body) and how it ends: idle, incomplete,
tunnel or broken. Where two readers differ, NAMED must hold the difference, with
the section that says who is right; one that is not named there is a failure.
The same seed gives the same streams.
"""
import collections
import email.errors
import hashlib
import http.client
import http.server
import io
import json
import os
import random
import re
import struct
import subprocess
import sys

Stream = collections.namedtuple("Stream", "side methods cut bytes damage")
# ends: the offset behind each message, where the reader tells it.
Reading = collections.namedtuple("Reading", "messages state ends", defaults=[()])
REQUESTS, RESPONSES = 0, 1
# A few seconds; and so many that every named difference turns up.
SHORT_COUNT, LONG_COUNT = 10000, 50000


# ---- streams ----

METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"SEARCH"]
TARGETS = [b"/", b"/v1/charges", b"/a?b=c&d=%20", b"*", b"http://other.example:81/p?q", b"/a//b;c=1", b"/%2e%2e/"]
FIELDS = [b"Host: x", b"Accept: */*", b"X-Empty:", b"X-Spaces: \t a b \t", b"Idempotency-Key: \"k-1\"",
          b"Cookie: a=b; c=d", b"X-High: caf\xc3\xa9", b"x-lower: 1", b"Expect: 100-continue"]
STATUSES = [200, 200, 201, 202, 204, 206, 301, 304, 400, 404, 429, 500, 503]

# What is done to one message: name -> change of (start line, fields, body as sent) -> the same.
DAMAGES = {}


def damage(*sides):
    def add(function):
        DAMAGES[function.__name__] = (function, sides)
        return function
    return add


def set_length(fields, *values):
    kept = [f for f in fields if not f.lower().startswith((b"content-length", b"transfer-encoding"))]
    return kept + [b"Content-Length: " + value for value in values]


def set_coding(fields, *values):
    return set_length(fields) + [b"Transfer-Encoding: " + value for value in values]


@damage(REQUESTS, RESPONSES)
def length_repeated(rng, start, fields, body):
    return start, set_length(fields, b"5", b"5"), b"12345"


@damage(REQUESTS, RESPONSES)
def length_list(rng, start, fields, body):
    return start, set_length(fields, b"5, 5"), b"12345"


@damage(REQUESTS, RESPONSES)
def lengths_differ(rng, start, fields, body):
    return start, set_length(fields, b"5", b"6"), b"123456"


@damage(REQUESTS, RESPONSES)
def length_malformed(rng, start, fields, body):
    return start, set_length(fields, rng.choice([b"+5", b"-5", b"0x5", b"5 5", b"5_0", b"", b"five", b"5;", b"5.0"])), b"12345"


@damage(REQUESTS, RESPONSES)
def length_huge(rng, start, fields, body):
    value = rng.choice([b"18446744073709551616", b"99999999999999999999", b"1" + b"0" * 40])
    return start, set_length(fields, value), b"12345"


@damage(REQUESTS, RESPONSES)
def length_beyond_53_bits(rng, start, fields, body):
    return start, set_length(fields, b"9223372036854775807"), b"12345"


@damage(REQUESTS, RESPONSES)
def length_with_leading_zeros(rng, start, fields, body):
    return start, set_length(fields, b"0000000000000000000000000000005"), b"12345"


@damage(REQUESTS, RESPONSES)
def length_and_chunked(rng, start, fields, body):
    order = [b"Content-Length: 3", b"Transfer-Encoding: chunked"]
    rng.shuffle(order)
    return start, set_length(fields) + order, b"5\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def coded_and_chunked(rng, start, fields, body):
    values = rng.choice([[b"gzip, chunked"], [b"gzip", b"chunked"], [b"gzip,\tchunked"], [b", chunked,"], [b"Chunked"]])
    return start, set_coding(fields, *values), b"5\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def chunked_not_last(rng, start, fields, body):
    values = rng.choice([[b"chunked, gzip"], [b"gzip"], [b"identity"], [b"xchunked"], [b"chunked", b"gzip"], [b"chunked;q=1"]])
    return start, set_coding(fields, *values), b"5\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def chunked_twice(rng, start, fields, body):
    return start, set_coding(fields, *rng.choice([[b"chunked, chunked"], [b"chunked", b"chunked"]])), b"5\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def chunk_size_malformed(rng, start, fields, body):
    size = rng.choice([b"0x5", b"+5", b"-5", b" 5", b"5 ", b"5g", b"", b"5_0", b"5\t"])
    return start, set_coding(fields, b"chunked"), size + b"\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def chunk_size_huge(rng, start, fields, body):
    size = rng.choice([b"10000000000000000", b"ffffffffffffffffff", b"f" * 40])
    return start, set_coding(fields, b"chunked"), size + b"\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def chunk_extension(rng, start, fields, body):
    extension = rng.choice([b";a", b";a=b", b";a=\"b c\"", b";a;b=c", b" ;a=b", b";a = b", b";", b";\"\r"])
    return start, set_coding(fields, b"chunked"), b"5" + extension + b"\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def chunk_lines_end_bare(rng, start, fields, body):
    text = rng.choice([b"5\n12345\r\n0\r\n\r\n", b"5\r\n12345\n0\r\n\r\n", b"5\r\n12345\r\n0\n\r\n", b"5\r\n12345\r\n0\r\n\n",
                       b"5\n12345\n0\n\n", b"5\r12345\r\n0\r\n\r\n"])
    return start, set_coding(fields, b"chunked"), text


@damage(REQUESTS, RESPONSES)
def chunk_without_its_end(rng, start, fields, body):
    text = rng.choice([b"5\r\n123450\r\n\r\n", b"5\r\n1234567\r\n0\r\n\r\n", b"5\r\n12345X\r0\r\n\r\n"])
    return start, set_coding(fields, b"chunked"), text


@damage(REQUESTS, RESPONSES)
def chunk_trailer(rng, start, fields, body):
    trailer = rng.choice([b"X-Sum: 1\r\n", b"Content-Length: 99\r\n", b"Transfer-Encoding: gzip\r\n", b"A: 1\r\nB:\r\n"])
    return start, set_coding(fields, b"chunked"), b"5\r\n12345\r\n0\r\n" + trailer + b"\r\n"


@damage(REQUESTS, RESPONSES)
def chunk_trailer_malformed(rng, start, fields, body):
    trailer = rng.choice([b"no colon\r\n", b" folded: 1\r\n", b": nameless\r\n", b"A : 1\r\n", b"A: 1\n", b"A: 1\r\n b\r\n",
                          b"A\x01: 1\r\n", b"A: 1\x00\r\n"])
    return start, set_coding(fields, b"chunked"), b"5\r\n12345\r\n0\r\n" + trailer + b"\r\n"


@damage(REQUESTS, RESPONSES)
def chunked_in_http_1_0(rng, start, fields, body):
    return start.replace(b"HTTP/1.1", b"HTTP/1.0"), set_coding(fields, b"chunked"), b"5\r\n12345\r\n0\r\n\r\n"


@damage(REQUESTS, RESPONSES)
def version(rng, start, fields, body):
    versions = [b"HTTP/1.0", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1", b"HTTP/1.", b"HTTP/11.1", b"http/1.1",
                b"HTTP/1.1 x", b"HTTPS/1.1", b"HTTP/01.1", b"RTSP/1.0", b"ICE/1.0"]
    return start.replace(b"HTTP/1.1", rng.choice(versions)), fields, body


@damage(REQUESTS)
def no_version(rng, start, fields, body):
    return start.rpartition(b" ")[0], fields, body


@damage(REQUESTS)
def method_unknown(rng, start, fields, body):
    method = rng.choice([b"FROB", b"get", b"A", b"X-!#$%&'*+.^_`|~9", b"M-SEARCH", b"QUERY", b"PRI", b"GE", b"GETS", b"SOURCE", b"DESCRIBE"])
    return method + start[start.index(b" "):], fields, body


@damage(REQUESTS)
def method_malformed(rng, start, fields, body):
    return rng.choice([b"", b"GE(T", b"GET\x00", b"\xc3\xa9", b"GET\t", b"\"GET\"", b"G/T"]) + start[start.index(b" "):], fields, body


@damage(REQUESTS)
def target_odd(rng, start, fields, body):
    method, _, end = start.split(b" ", 2) if start.count(b" ") == 2 else (b"GET", b"", b"HTTP/1.1")
    target = rng.choice([b"", b"a", b"/a b", b"/a\tb", b"/a\x00b", b"/a\x7fb", b"/a\x01", b"//h/p", b"?q", b"/#f", b"/a\xff", b"/\xc3\xa9",
                         b"http://", b"ftp://h/p", b"h:80", b"<x>", b"1", b" /two", b"/a\x0bb", b"/a\x0cb", b"/\xc2\x85x"])
    return b" ".join([method, target, end]), fields, body


@damage(REQUESTS)
def connect(rng, start, fields, body):
    return b"CONNECT other.example:443 HTTP/1.1", set_length(fields), b""


@damage(REQUESTS)
def upgrade(rng, start, fields, body):
    return start, fields + [b"Connection: Upgrade", b"Upgrade: websocket"], body


@damage(REQUESTS, RESPONSES)
def close_in_the_middle(rng, start, fields, body):
    return start, fields + [b"Connection: close"], body


@damage(REQUESTS, RESPONSES)
def field_malformed(rng, start, fields, body):
    field = rng.choice([b"Name : v", b"Name", b": v", b"", b"Na me: v", b"N\x00: v", b"N\xc3\xa9: v", b"N\x7f: v", b"N(): v",
                        b"Name\t: v", b"=?: v"])
    fields = list(fields)
    fields.insert(rng.randrange(len(fields) + 1), field)
    return start, fields, body


@damage(REQUESTS, RESPONSES)
def value_odd(rng, start, fields, body):
    value = rng.choice([b"a\x00b", b"a\x01b", b"a\x7fb", b"a\rb", b"\r", b"a\x0bb", b"a\x0cb", b"\xff", b"a\x1cb", b"a\xc2\x85b"])
    fields = list(fields)
    fields.insert(rng.randrange(len(fields) + 1), b"X-Odd: " + value)
    return start, fields, body


@damage(REQUESTS, RESPONSES)
def line_folded(rng, start, fields, body):
    fields = list(fields)
    fields.insert(rng.randrange(1, len(fields) + 1), b"X-Fold: a\r\n" + rng.choice([b" ", b"\t", b"  "]) + b"b")
    return start, fields, body


@damage(REQUESTS, RESPONSES)
def first_line_led_by_space(rng, start, fields, body):
    return start, [b" X-First: 1"] + list(fields), body


@damage(REQUESTS, RESPONSES)
def empty_lines_first(rng, start, fields, body):
    return rng.choice([b"\r\n", b"\r\n\r\n", b"\n", b"\r"]) + start, fields, body


@damage(REQUESTS, RESPONSES)
def spaces_in_start_line(rng, start, fields, body):
    return rng.choice([start.replace(b" ", b"  ", 1), start.replace(b" ", b"\t", 1), b" " + start, start + b" ", start + b"\t"]), fields, body


@damage(RESPONSES)
def status_odd(rng, start, fields, body):
    status = rng.choice([b"99", b"1000", b"20", b"2000", b"20x", b"-200", b"+200", b"0200", b"", b"600", b"999", b"000", b"100 ", b"2 0"])
    return b"HTTP/1.1 " + status + b" OK", fields, body


@damage(RESPONSES)
def reason_odd(rng, start, fields, body):
    return rng.choice([b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1 200 caf\xc3\xa9", b"HTTP/1.1 200 a\x00b", b"HTTP/1.1 200 a\rb",
                       b"HTTP/1.1 200OK", b"HTTP/1.1 200\tOK"]), fields, body


@damage(RESPONSES)
def interim(rng, start, fields, body):
    first = rng.choice([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                        b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n",
                        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"])
    return first + start, fields, body


@damage(RESPONSES)
def switching_protocols(rng, start, fields, body):
    return b"HTTP/1.1 101 Switching Protocols", [b"Connection: Upgrade", b"Upgrade: websocket"], b"\x81\x05hello"


def sent(start, fields, body, line_end=b"\r\n"):
    return line_end.join([start, *fields, b"", b""]) + body


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def body(self):
        return bytes(self.rng.getrandbits(8) for _ in range(self.rng.choice([0, 1, 5, 17, 80])))

    def chunks(self, body):
        rng, text = self.rng, b""
        while body:
            size = rng.randrange(1, len(body) + 1)
            text += (b"%X" if rng.random() < 0.3 else b"%x") % size + rng.choice([b"", b"", b";a=b"]) + b"\r\n" + body[:size] + b"\r\n"
            body = body[size:]
        return text + rng.choice([b"0", b"000"]) + b"\r\n" + rng.choice([b"", b"", b"X-Sum: 1\r\n"]) + b"\r\n"

    def message(self, side, method, last):
        """A valid one: (start line, fields, body as sent). Only the last one may run to the close."""
        rng, body = self.rng, self.body()
        fields = [b"Host: x"] if side == REQUESTS else [b"Server: y"]
        fields += rng.sample(FIELDS[1:], rng.randrange(4))
        if side == REQUESTS:
            target = rng.choice([t for t in TARGETS if t != b"*" or method == b"OPTIONS"])
            start, bodiless = method + b" " + target + b" HTTP/1.1", method in (b"GET", b"HEAD") and rng.random() < 0.8
        else:
            fields = [f for f in fields if not f.startswith((b"Host", b"Expect"))]
            status = rng.choice(STATUSES)
            if method == b"CONNECT":
                status = rng.choice([status, 407, 403]) if last else rng.choice([407, 403])
            start = b"HTTP/1.1 %d %s" % (status, rng.choice([b"OK", b"", b"Not Found"]))
            bodiless = False
            if method == b"HEAD" or status in (204, 304) or (method == b"CONNECT" and status // 100 == 2):
                promise = [b"Content-Length: %d" % len(body)] if status == 304 or method == b"HEAD" else []
                return start, fields + rng.choice([promise, []]), b""
        kind = rng.randrange(4 if side == RESPONSES and last else 3)
        if bodiless:
            pass
        elif kind == 0 or (kind == 2 and side == RESPONSES):
            fields.insert(rng.randrange(len(fields) + 1), b"Content-Length: %d" % len(body))
            return start, fields, body
        elif kind == 1:
            fields.insert(rng.randrange(len(fields) + 1), rng.choice([b"Transfer-Encoding: chunked", b"transfer-encoding:CHUNKED"]))
            return start, fields, self.chunks(body)
        elif kind == 3:
            return start, fields, body
        return start, fields, b""

    def flip(self, text):
        """Random damage of bytes that nobody named."""
        rng, text = self.rng, bytearray(text)
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(text) + 1)
            text[at:at + rng.randrange(3)] = rng.choice([b"", b"\r", b"\n", b"\r\n", b" ", b"0", b":", b"\0", b"\x80", bytes([rng.getrandbits(8)])])
        return bytes(text)

    def stream(self):
        rng = self.rng
        side = rng.choice([REQUESTS, RESPONSES])
        # node's client asks once a connection: one answer is the usual case here.
        count = rng.choice([1, 2, 3]) if side == REQUESTS else rng.choice([1, 1, 2])
        methods = [rng.choice(METHODS + ([b"CONNECT"] if side == RESPONSES else [])) for _ in range(count)]
        messages = [self.message(side, methods[i], i == count - 1) for i in range(count)]
        draw, name = rng.random(), "none"
        if draw < 0.45:
            name = rng.choice([n for n, (_, sides) in DAMAGES.items() if side in sides])
            at = rng.randrange(count)
            messages[at] = DAMAGES[name][0](rng, *messages[at])
        texts = [sent(*message) for message in messages]
        if 0.45 <= draw < 0.5:
            name, texts = "lines_end_bare", [sent(*message, line_end=b"\n") for message in messages]
        text = b"".join(texts)
        if 0.5 <= draw < 0.55:
            name, text = "cut_short", text[:rng.randrange(1, len(text))]
        elif 0.55 <= draw < 0.7:
            name, text = "bytes_changed", self.flip(text)
        return Stream(side, methods if side == RESPONSES else [], rng.choice([0, 0, 1, 3, 7]), text, name)


def frame(stream):
    methods = b"".join(bytes([len(m)]) + m for m in stream.methods)
    return bytes([stream.side, len(stream.methods)]) + methods + struct.pack("<II", stream.cut, len(stream.bytes)) + stream.bytes


# ---- the four readers ----

def ours(program, streams):
    run = subprocess.run([program], input=b"".join(map(frame, streams)), stdout=subprocess.PIPE, check=True)
    readings = []
    for stream, line in zip(streams, run.stdout.decode().splitlines(), strict=True):
        words, width = line.split(" "), 5 if stream.side == REQUESTS else 4
        messages, ends = [], []
        while re.fullmatch("[0-9a-f]+", words[0]):
            *head, length, sha, end = words[:width]
            messages.append((*(head if stream.side == REQUESTS else [int(head[0])]), int(length), sha))
            ends.append(int(end))
            words = words[width:]
        readings.append(Reading(messages, " ".join(words), ends))
    return readings


def node(streams):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "framing_node.js")
    run = subprocess.run(["node", script], input=b"".join(map(frame, streams)), stdout=subprocess.PIPE, check=True)
    values = [json.loads(line) for line in run.stdout.splitlines()]
    return [Reading([tuple(m) for m in v["messages"]], v["state"]) for _, v in zip(streams, values, strict=True)]


class Socket:
    """What http.client and http.server need of one: all bytes are there, then FIN."""

    def __init__(self, data):
        self.file = io.BytesIO(data)
        self.file.close = lambda: None
        self.sent = io.BytesIO()

    def makefile(self, mode, *_):
        return self.file if "r" in mode else self.sent

    def sendall(self, data):
        self.sent.write(data)

    def settimeout(self, _):
        pass


def digest(body):
    return len(body), hashlib.sha256(body).hexdigest()


class Requests(http.server.BaseHTTPRequestHandler):
    """http.server leaves bodies to its user: here those of a Content-Length are read; others end the reading."""

    protocol_version = "HTTP/1.1"

    def __init__(self, data):
        self.reading = Reading([], "idle")
        self.chunked = False
        super().__init__(Socket(data), ("", 0), None)

    def log_message(self, *_):
        pass

    def send_error(self, code, *_, **__):
        self.state("broken: %d" % code)
        self.close_connection = True

    def state(self, state):
        self.reading = self.reading._replace(state=state)

    def __getattr__(self, name):
        if not name.startswith("do_"):
            raise AttributeError(name)
        return self.any_method

    def any_method(self):
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not re.fullmatch("[0-9]+", length):
            self.state("unread")
            self.close_connection = True
            return
        body = self.rfile.read(min(int(length), 1 << 24))
        if len(body) < int(length):
            self.state("incomplete")
            self.close_connection = True
            return
        head = [text.encode("latin-1").hex() for text in (self.command, self.path)]
        self.reading.messages.append((*head, *digest(body)))


def python_requests(stream):
    try:
        handler = Requests(stream.bytes)
    except (ValueError, email.errors.MessageError) as error:
        return Reading([], "broken: %s" % error)
    return handler.reading


def python_responses(stream):
    socket, messages = Socket(stream.bytes), []
    for method in stream.methods:
        response = http.client.HTTPResponse(socket, method=method.decode())
        try:
            response.begin()
            tunnel = response.status == 101 or (method == b"CONNECT" and response.status // 100 == 2)
            body = b"" if tunnel else response.read()
        except http.client.IncompleteRead:
            return Reading(messages, "incomplete")
        except http.client.RemoteDisconnected:
            return Reading(messages, "idle")
        except (http.client.HTTPException, ValueError, OverflowError, MemoryError) as error:
            return Reading(messages, "broken: %s" % type(error).__name__)
        messages.append((response.status, *digest(body)))
        if tunnel:
            return Reading(messages, "tunnel")
        if response.will_close:
            return Reading(messages, "idle")
    return Reading(messages, "surplus" if socket.file.read(1) else "idle")


# ---- where they differ ----

# text: the stream; rest: it from behind the last message that both agree on, which is before; ours
# and theirs: what each makes of rest, "message" or the state in which it stopped.
Difference = collections.namedtuple("Difference", "peer side method text before rest ours theirs")


def difference(stream, ours, theirs, peer):
    """The first one, or None. A reader that stops by design is believed as far as it went."""
    if peer == "node" and len(stream.methods) > 1:
        return None  # its client sends one request a connection here
    messages, ends, state = list(ours.messages), list(ours.ends), ours.state
    if peer == "python" and stream.side == RESPONSES:
        # http.client reads over a 100 and shows it to nobody.
        keep = [i for i, m in enumerate(messages) if m[0] != 100]
        messages, ends = [messages[i] for i in keep], [ends[i] for i in keep]
    if peer == "node" and state == "surplus":
        state = "idle"  # its client has no place to tell of it, or calls it an error of the parser
        theirs = theirs._replace(state="idle" if theirs.messages == messages else theirs.state)
    count = 0
    while count < min(len(messages), len(theirs.messages)) and messages[count] == theirs.messages[count]:
        count += 1
    mine = "message" if count < len(messages) else state
    other = "message" if count < len(theirs.messages) else theirs.state
    if other == "unread" or (mine != "message" and mine.partition(":")[0] == other.partition(":")[0]):
        return None
    answered = sum(m[0] >= 200 for m in messages[:count]) if stream.side == RESPONSES else 0
    start = ends[count - 1] if count else 0
    before = stream.bytes[ends[count - 2] if count > 1 else 0:start]
    method = stream.methods[min(answered, len(stream.methods) - 1)] if stream.methods else b""
    return Difference(peer, stream.side, method, stream.bytes, before, stream.bytes[start:], mine, other)


def head_of(text):
    """With its empty line."""
    return re.match(rb"[\r\n]*.*?(\n\r?\n|\Z)", text, re.S).group()


def start_line(found):
    return re.split(rb"\r?\n", found.rest.lstrip(b"\r\n"), 1)[0]


def in_head(pattern):
    return lambda found: re.search(pattern, head_of(found.rest), re.I | re.S)


def in_rest(pattern):
    return lambda found: re.search(pattern, found.rest, re.I | re.S)


def in_start(pattern):
    return lambda found: re.search(pattern, start_line(found), re.S)


def just_before(pattern):
    return lambda found: re.search(pattern, head_of(found.before), re.I | re.S)


def anything(found):
    return True


def head_is_cut(found):
    return not re.search(rb"\r?\n\r?\n", found.rest.lstrip(b"\r\n"))


CLOSES = rb"\nconnection:[ \t]*close|HTTP/1\.0"
TRAILER = rb"\r\n0+[^\n]*\r\n[^\r\n]"
CODED = rb"\ntransfer-encoding:"
CHUNKED = CODED + rb"[ \t]*chunked(\r?\n|$)"

# One row a difference that is understood: peer, side, pattern of what we make of it, of what they
# do, where it is so, the section that decides (RFC 9112 where no other is named), and why ours stands.
Named = collections.namedtuple("Named", "name peer side ours theirs where section why")
NAMED = [Named(*row) for row in [
    # node's server and client
    ("connect asks, the answer decides", "node", REQUESTS, ".*", "tunnel", just_before(rb"^CONNECT "), "RFC 9110 9.3.6",
     "a tunnel begins with the 2xx; the other stream tells of it"),
    ("any answer to CONNECT is a tunnel to node", "node", RESPONSES, ".*", "message|tunnel", lambda f: f.method == b"CONNECT",
     "6.3 rule 1", "only a 2xx is"),
    ("after close", "node", REQUESTS, ".*", "broken.*", just_before(CLOSES), "9.6",
     "a server stops reading there; what the client did send was sent"),
    ("Upgrade that nobody takes", "node", REQUESTS, ".*", "idle", just_before(rb"\nupgrade:"), "RFC 9110 7.8",
     "a server may ignore it and go on in HTTP; node drops what follows"),
    ("minor version above 1", "node", None, "message", "broken.*", in_start(rb"HTTP/1\.[2-9]"), "RFC 9110 2.5",
     "to be read as the highest minor version known"),
    ("other major version", "node", None, "broken: not HTTP/1.x", "message", in_start(rb"HTTP/(0\.9|2\.0)|(RTSP|ICE)/1\.0"), "2.3",
     "no HTTP/1.x, so its framing is not that of HTTP/1.x"),
    ("no version", "node", REQUESTS, "broken: not HTTP/1.x", "message|incomplete", in_start(rb"^[^ ]+ [^ ]+$"), "3",
     "HTTP/0.9: no field follows such a line"),
    ("method that node does not know", "node", REQUESTS, "message|incomplete", "broken.*",
     in_start(rb"^(?!(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|SEARCH) )[!#-'*+.^_`|~\w-]+( |$)"), "RFC 9110 9.1", "any token is a method"),
    ("bare LF", "node", None, "message|incomplete|broken.*", "broken.*",
     in_head(rb"(^|[^\r])\n"), "2.2", "a recipient may take it for a line end, and servers do"),
    ("folded line", "node", None, "message|incomplete", "broken.*", in_rest(rb"\n[ \t]"), "5.2",
     "to be refused or replaced by a space; we replace"),
    ("odd byte in a value", "node", None, "message|incomplete", "broken.*",
     in_rest(rb":[^\n]*[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"), "RFC 9110 5.5", "invalid, and may be kept where it is safe"),
    ("both lengths", "node", None, "message", "broken.*",
     lambda f: in_head(CODED)(f) and in_head(rb"\ncontent-length:")(f), "6.1", "Transfer-Encoding wins; refusing is allowed too"),
    ("chunked twice", "node", None, "message", "broken.*", in_head(rb"chunked.*chunked"), "6.1",
     "no sender may, but the last coding is chunked and frames it"),
    ("empty members of a list", "node", None, "message", "broken.*|message", in_head(CODED + rb"[^\n]*,"),
     "RFC 9110 5.6.1.2", "a recipient takes them for nothing"),
    ("chunk extension", "node", None, "message|incomplete", "broken.*", in_rest(rb"\n[0-9a-f]+[ \t]*;"), "7.1.1",
     "a recipient ignores what it does not know"),
    ("trailer", "node", None, "message|incomplete", "broken.*",
     lambda f: in_head(CODED)(f) and in_rest(TRAILER)(f), "6.5.1", "a trailer field never frames, so nobody need understand it"),
    ("byte that no target may have", "node", REQUESTS, "message|incomplete", "broken.*", in_start(rb"^[^ ]+ +[^ ]*[\x80-\xff#<>\"\\^`{|}]|^[^ ]+ +(?!/|\*|https?://)"), "3.2",
     "a server may refuse it; the ledger has what was sent"),
    ("interim alone", "node", RESPONSES, "idle", "incomplete", lambda f: f.before.startswith(b"HTTP/1.1 1") and not f.rest, "RFC 9110 15.2",
     "between two messages we are idle; that the final one never came is for the call to say"),
    ("status that is no three digits from 100", "node", RESPONSES, "message|incomplete|broken: bad status", ".*",
     in_start(rb"^HTTP/1\.\d (?![1-9]\d\d( |$))"), "4", "node lets 000 pass and refuses 0200, which is 200 to http.client and us"),
    ("bare CR behind a reason", "node", RESPONSES, "broken: bare CR", "message", in_start(rb" [1-9]\d\d[^\n]*\r"), "2.2",
     "invalid; this llhttp ends the line there"),
    # http.server and http.client
    ("after close", "python", None, ".*", "idle", just_before(CLOSES), "9.6", "the reader goes away; we say what came"),
    ("lax start line", "python", None, "broken: (bad method|bad target|bad status|not HTTP/1.x)", "message|incomplete|tunnel|idle",
     lambda f: not re.fullmatch(rb"[!#-'*+.^_`|~\w-]+ [!-~\x80-\xff]+ HTTP/1\.\d|HTTP/1\.\d [1-9]\d\d( .*)?", start_line(f)), "3, 4",
     "http.server splits at any white space, http.client takes what int() takes"),
    ("lax fields", "python", None, "broken: bad field", "message|incomplete|surplus|tunnel", anything, "5.1",
     "the parser of mail passes over what is no field"),
    ("lax Content-Length", "python", None, "broken: bad or repeated Content-Length", "message|incomplete|surplus|tunnel|idle",
     in_head(rb"\ncontent-length:"), "6.3 rule 5", "the first one, and what int() takes; a list that agrees may be taken, ours is refused by llhttp"),
    ("bare CR", "python", None, "broken: bare CR", ".*", in_head(rb"\r([^\n]|$)"), "2.2", "invalid; Python ends a line there"),
    ("end of stream inside a head", "python", None, "incomplete", "message|broken: (400|BadStatusLine)|tunnel|surplus", head_is_cut, "8",
     "an incomplete head is no message; Python takes the end for the empty line"),
    ("end of stream inside a trailer", "python", RESPONSES, "incomplete", "message", lambda f: in_head(CHUNKED)(f) and in_rest(rb"\r\n0+[^\n]*(\n[^\n]*)*$")(f),
     "8", "chunked is complete with its last line"),
    ("slashes in front of a path", "python", REQUESTS, "message", "message", in_start(rb"^[^ ]+ +//"), "3.2.1", "http.server makes one of them"),
    ("white space of Unicode", "python", REQUESTS, "message", "message|broken: 400", in_start(rb"[\x85\xa0\x1c-\x1f]"), "3",
     "http.server splits there"),
    ("empty line first", "python", None, "message|broken.*|incomplete", "idle|broken: BadStatusLine", lambda f: f.rest[:1] in (b"\r", b"\n"), "2.2",
     "to be passed over before a request; servers send them as well"),
    ("lax chunk size", "python", RESPONSES, "broken: (bad chunk size|chunk size over 64 bits)", "message|incomplete|broken.*|surplus",
     in_head(CHUNKED), "7.1", "hex digits and nothing else; http.client takes what int() takes"),
    ("lax end of a chunk", "python", RESPONSES, "broken: (no CRLF after chunk data|bare (LF|CR) in chunk framing)",
     "message|incomplete|surplus|idle|broken.*", in_head(CHUNKED), "7.1", "http.client skips two bytes unseen, and takes a bare LF"),
    ("lax trailer", "python", RESPONSES, "broken: bad trailer", "message|incomplete|surplus", in_head(CHUNKED), "7.1.2",
     "http.client reads lines until an empty one"),
    ("chunks after 204 and 304", "python", RESPONSES, "message", "message|incomplete|broken.*",
     lambda f: in_start(rb" (204|304)")(f) and in_head(CODED)(f), "6.3 rule 1", "they end at the empty line; http.client reads on"),
    ("codings that http.client does not read", "python", RESPONSES, ".*", "message|incomplete|surplus|broken.*",
     lambda f: in_head(CODED)(f) and not (in_head(CHUNKED)(f) and len(re.findall(CODED, head_of(f.rest), re.I)) == 1), "6.1",
     "it knows the value \"chunked\" alone, of the first line alone"),
    ("102 and 103 are interim", "python", RESPONSES, ".*", ".*", lambda f: b"HTTP/1.1 10" in f.text, "RFC 9110 15.2",
     "http.client knows 100 alone"),
]]


def name_of(found):
    for named in NAMED:
        if named.peer == found.peer and named.side in (None, found.side) and re.fullmatch(named.ours, found.ours) and \
                re.fullmatch(named.theirs, found.theirs) and named.where(found):
            return named
    return None


def main():
    build = os.environ.get("NIGHTCLERK_BUILD", "build")
    count = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ORACLE_COUNT", SHORT_COUNT))
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20260101
    generator = Generator(seed)
    streams = [generator.stream() for _ in range(count)]
    mine = ours(os.path.join(build, "tests/oracles/framing"), streams)
    python = [python_requests(s) if s.side == REQUESTS else python_responses(s) for s in streams]
    used, unnamed = collections.Counter(), 0
    for stream, *readings in zip(streams, mine, node(streams), python):
        for peer, theirs in zip(("node", "python"), readings[1:]):
            found = difference(stream, readings[0], theirs, peer)
            named = found and name_of(found)
            if named:
                used[named] += 1
            elif found:
                unnamed += 1
                if unnamed <= 5:
                    print("# %s differs on %s: we say %r, it says %r of\n#   %r" %
                          (peer, stream.damage, found.ours, found.theirs, found.rest))
    unused = [named for named in NAMED if not used[named]] if count >= LONG_COUNT else []
    print("1..2")
    print("%s 1 - framing of %d streams, %d messages: %d differences, %d of them not named" %
          ("not ok" if unnamed else "ok", count, sum(len(r.messages) for r in mine), unnamed + used.total(), unnamed))
    print("%s 2 - every named difference is there%s" % ("not ok" if unused else "ok", "" if count >= LONG_COUNT else " # SKIP in a short run"))
    for named in NAMED:
        print("# %6d  %-6s  %s: %s, %s" % (used[named], named.peer, named.name, named.section, named.why))
    return 1 if unnamed or unused else 0


if __name__ == "__main__":
    sys.exit(main())
