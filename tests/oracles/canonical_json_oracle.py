#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares canonicalise with a canonical form made independently: Python's json
for the grammar, decimal.Decimal for numbers, the rules written down once more.

    canonical_json_oracle.py [COUNT [SEED]]

Texts are random JSON in random spelling; a part of them is damaged, so that the
raw fallback is compared too. The same seed gives the same texts.
"""
import decimal
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys

SHORT_COUNT = 20000  # a few seconds
DEPTH_MAX = 512
EXPONENT_DIGITS_MAX = 12


class Number(str):
    """A number literal as it was written."""


class Members(list):
    """The members of an object in order, duplicates included."""


# ---- the canonical form ----

def number_text(literal):
    exponent = re.search(r"[eE][+-]?0*([0-9]*)$", literal)
    mantissa = re.split(r"[eE]", literal)[0]
    if not mantissa.strip("-0."):
        return "0"
    if exponent and len(exponent.group(1)) > EXPONENT_DIGITS_MAX:
        return literal
    sign, digits, power = decimal.Decimal(literal).as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    point = len(digits) + power  # value = 0.digits * 10 ** point
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if count > 1 else "") + "e%+d" % (point - 1)
    return ("-" if sign else "") + text


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def string_text(value):
    pieces = []
    for character in value:
        if character in SHORT:
            pieces.append(SHORT[character])
        elif character < " " or "\ud800" <= character <= "\udfff":
            pieces.append("\\u%04x" % ord(character))
        else:
            pieces.append(character)
    return '"' + "".join(pieces) + '"'


def utf16(name):
    return name.encode("utf-16-be", "surrogatepass")


class Form:
    def __init__(self):
        self.duplicate = False
        self.surrogate = False

    def string(self, value):
        self.surrogate |= any("\ud800" <= c <= "\udfff" for c in value)
        return string_text(value)

    def text(self, value, depth=0):
        if isinstance(value, Number):
            return number_text(value)
        if isinstance(value, str):
            return self.string(value)
        if value is True or value is False or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        if depth == DEPTH_MAX:
            raise ValueError("nesting")
        if isinstance(value, Members):
            names = [name for name, _ in value]
            self.duplicate |= len(set(names)) < len(names)
            ordered = sorted(value, key=lambda member: utf16(member[0]))
            texts = [self.string(name) + ":" + self.text(element, depth + 1) for name, element in ordered]
            return "{" + ",".join(texts) + "}"
        return "[" + ",".join(self.text(element, depth + 1) for element in value) + "]"


def refuse(word):
    raise ValueError(word)


def expected_line(raw):
    if not raw:
        return "none %s " % hashlib.sha256(b"").hexdigest()
    form = Form()
    try:
        text = raw.decode("utf-8")
        if text.startswith("\ufeff"):
            text = text[1:]
        value = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse,
                           object_pairs_hook=Members)
        canonical = form.text(value).encode("utf-8")
    except (ValueError, RecursionError):
        return "raw %s " % hashlib.sha256(raw).hexdigest()
    flags = ("d" if form.duplicate else "") + ("s" if form.surrogate else "")
    return "json %s %s" % (hashlib.sha256(canonical).hexdigest(), flags)


# ---- random texts ----

CHARACTERS = ['"', "\\", "/", "\b", "\f", "\n", "\r", "\t", "\0", "\x1f", "\x7f", "\x80", "\xe9",
              "\u20ac", "\u2028", "\ud7ff", "\ue000", "\ufffd", "\uffff", "\U00010000", "\U0001f600",
              "\U0010ffff", " ", "a", "b", "Z", "0"]
ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
DAMAGE = [b"", b",", b"]", b"}", b"\\", b'"', b"0", b"NaN", b"\xed\xa0\x80", b"\xc0\x80", b"//", b"e", b"\xff"]
SURROGATES = ["\\ud800", "\\uDBFF", "\\udc00", "\\uDfFf"]


class Writer:
    def __init__(self, rng):
        self.rng = rng

    def space(self):
        return self.rng.choice(["", "", "", "", " ", "\n", "\t", "\r\n", "  "])

    def number(self):
        rng = self.rng
        kind = rng.randrange(8)
        if kind == 0:
            return repr(rng.uniform(-1e3, 1e3))
        if kind == 1:
            bits = rng.getrandbits(63) % 0x7FE0000000000000
            return repr(struct.unpack("<d", struct.pack("<Q", bits))[0])
        digits = str(rng.getrandbits(rng.choice([1, 4, 16, 53, 64, 90])))
        if kind == 2:
            return rng.choice(["", "-"]) + digits
        literal = rng.choice(["", "-"]) + digits
        if rng.random() < 0.6:
            literal += "." + rng.choice(["", "0", "00000"])
            literal += str(rng.getrandbits(rng.choice([1, 16, 70]))) + rng.choice(["", "0", "000"])
        if rng.random() < 0.6:
            literal += rng.choice("eE") + rng.choice(["", "+", "-"]) + rng.choice(["", "0", "00"])
            literal += str(rng.choice([rng.randrange(3), rng.randrange(30), rng.randrange(400),
                                       10 ** 11, 10 ** 12]))
        return literal

    def character(self, character):
        rng = self.rng
        code = ord(character)
        choice = rng.randrange(3)
        if choice == 0 and character in ESCAPES:
            return ESCAPES[character]
        if choice <= 1 or code < 0x20 or character in '"\\':
            units = character.encode("utf-16-be")
            text = "".join("\\u" + units[i:i + 2].hex() for i in range(0, len(units), 2))
            return "".join(c.upper() if c != "u" and rng.random() < 0.3 else c for c in text)
        return character

    def string(self):
        rng = self.rng
        pieces = []
        for _ in range(rng.choice([0, 1, 1, 2, 3, 9])):
            draw = rng.random()
            if draw < 0.01:
                pieces.append(rng.choice(SURROGATES))
            elif draw < 0.5:
                pieces.append(rng.choice(["a", "b", "key", "amount "]))
            else:
                pieces.append(self.character(rng.choice(CHARACTERS)))
        return '"' + "".join(pieces) + '"'

    def value(self, depth=0):
        rng = self.rng
        kind = rng.randrange(10 if depth < 5 else 6)
        if kind < 2:
            text = self.number()
        elif kind < 4:
            text = self.string()
        elif kind == 4:
            text = rng.choice(["true", "false", "null"])
        elif kind == 5:
            text = rng.choice(["[]", "{}", "[ ]", "{ }"])
        elif kind < 8:
            elements = [self.value(depth + 1) for _ in range(rng.randrange(1, 5))]
            text = "[" + ",".join(elements) + "]"
        else:
            members = [self.space() + self.string() + self.space() + ":" + self.value(depth + 1)
                       for _ in range(rng.choice([1, 2, 2, 3, 5, 20]))]
            text = "{" + ",".join(members) + "}"
        return self.space() + text + self.space()

    def text(self):
        rng = self.rng
        draw = rng.random()
        if draw < 0.004:
            depth = rng.choice([DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1])
            raw = rng.choice([b"[" * depth + b"]" * depth, b'{"b":0,"a":' * depth + b"1" + b"}" * depth])
        else:
            raw = self.value().encode("utf-8")
        if draw > 0.98:
            raw = b"\xef\xbb\xbf" + raw
        if draw < 0.004 or rng.random() < 0.7:
            return raw
        raw = bytearray(raw)
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(raw) + 1)
            raw[at:at + rng.randrange(3)] = rng.choice(DAMAGE + [bytes([rng.getrandbits(8)])])
        return bytes(raw)


def main():
    program = os.path.join(os.environ.get("NIGHTCLERK_BUILD", "build"), "tests/oracles/canonicalise")
    count = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ORACLE_COUNT", SHORT_COUNT))
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20260101
    sys.setrecursionlimit(20000)
    writer = Writer(random.Random(seed))
    texts = [writer.text() for _ in range(count)]
    framed = b"".join(struct.pack("<I", len(raw)) + raw for raw in texts)
    run = subprocess.run([program], input=framed, stdout=subprocess.PIPE, check=True)
    lines = run.stdout.decode().split("\n")
    if len(lines) != count + 1:
        sys.exit("%d lines came back for %d texts" % (len(lines) - 1, count))
    wrong = 0
    kinds = {}
    for raw, line in zip(texts, lines):
        expected = expected_line(raw)
        kind = " ".join(expected.split(" ")[::2]).strip()
        kinds[kind] = kinds.get(kind, 0) + 1
        if line != expected:
            wrong += 1
            if wrong <= 5:
                print("# text      %r\n# expected  %s\n# got       %s" % (raw, expected, line))
    print("1..1")
    print("%s 1 - canonical form of %d texts, seed %d: %s; %d differ" %
          ("not ok" if wrong else "ok", count, seed, ", ".join("%d %s" % (n, k) for k, n in sorted(kinds.items())), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
