#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Connections that open and close as fast as they can. Many of them change their
state in a softirq that interrupts another's change: the kernel does not enter
a program that already runs on this CPU (bpf/copies.bpf.h), and none is lost.
"""

from harness import SLOW, equal, fact, play

CLIENTS = 6
EACH = 200 if SLOW else 1000

STORM = """
import socket, sys, threading

clients, each = map(int, sys.argv[1:3])
listener = socket.create_server(("127.0.0.1", 0), backlog=512)
port = listener.getsockname()[1]
sent = [0] * clients

def serve():
    while True:
        connection, _ = listener.accept()
        with connection:
            if connection.recv(1) == b"q":
                return

def connect(number):
    for i in range(each):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"x")
            connection.recv(1)
        sent[number] += 1

servers = [threading.Thread(target=serve) for _ in range(3)]
threads = [threading.Thread(target=connect, args=(n,)) for n in range(clients)]
for thread in servers + threads: thread.start()
for thread in threads: thread.join()
for _ in servers: socket.create_connection(("127.0.0.1", port)).sendall(b"q")
for thread in servers: thread.join()
print(sum(sent) + len(servers))
"""


@fact
def no_state_is_missed_and_every_byte_is_told(live):
    script = live.write("storm.py", STORM)
    result = live.run(["/usr/bin/python3", script, str(CLIENTS), str(EACH)]).expect(0)
    connections = int(result.stdout)
    equal(connections, CLIENTS * EACH + 3, "connections made")
    equal(result.summary["recursion_misses"], 0, "recursion_misses")
    equal(result.summary["bytes"], {"accepted": connections, "in_messages": 0, "in_holes": 0, "in_blind": connections},
          "bytes")


play()
