# SPDX-License-Identifier: BSD-2-Clause
"""What the servers of several tests have in common, as the begin of their programs."""

# A handler for HTTP/1.1, and serve(handler), which prints its port: a thread for each connection.
HANDLER = """
import http.server, json, sys

class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = lambda *more: None

    def take_body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, content, *fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

def serve(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""

# Also answer_model(well): 853 tokens, or nothing.
MODEL = HANDLER + """
class Model(Answering):
    def answer_model(self, well, otherwise=504):
        answer = {"id": "a", "choices": [{"index": 0, "message": {"content": "8.8"}, "finish_reason": "stop"}],
                  "usage": {"prompt_tokens": 812, "completion_tokens": 41}}
        self.answer(200 if well else otherwise, json.dumps(answer).encode() if well else b"{}",
                    ("Content-Type", "application/json"))
"""
