# SPDX-License-Identifier: Apache-2.0
"""What test_traces lets talk: a web server of Python threads that asks a Redis and a PostgreSQL for each request, and says what it asked.

    shop.py REDIS_PORT POSTGRES_PORT    it prints its port, answers each request with what it asked for it, in order (JSON), and ends with its standard input
    shop.py ask PORT                    its client: for each line of its standard input, a path and a trace's id, it asks once and prints the answer

Each of the server's threads has its own connections; libpq waits in poll for one descriptor, Redis' socket is read at once.
"""
import ctypes
import http.client
import http.server
import json
import socket
import sys
import threading

SLOW_S = 0.04
SECRET = "s3cr3t-" + "Zq7"
here = threading.local()
pq = ctypes.CDLL("libpq.so.5")
pq.PQconnectdb.restype = pq.PQexec.restype = ctypes.c_void_p
for f in (pq.PQexec, pq.PQclear, pq.PQresultStatus):
    f.argtypes = [ctypes.c_void_p] + ([ctypes.c_char_p] if f is pq.PQexec else [])


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def query(self, sql):
        if not hasattr(here, "db"):
            here.db = pq.PQconnectdb(f"host=127.0.0.1 port={sys.argv[2]} user=postgres dbname=postgres sslmode=disable gssencmode=disable".encode())
        result = pq.PQexec(here.db, sql.encode())
        assert pq.PQresultStatus(result) == 2, sql
        pq.PQclear(result)
        self.asked.append(("postgres", sql.split("(")[0].rstrip(" 1")))

    def redis(self, *words):
        if not hasattr(here, "redis"):
            here.redis = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        here.redis.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
        assert here.redis.recv(4096)
        self.asked.append(("redis", words[0]))

    def do_GET(self):
        self.asked = []
        if self.path.startswith("/cart"):
            self.redis("GET", "cart:7")
            self.redis("SET", "cart:7", SECRET)
            self.redis("GET", "cart:7")
        elif self.path.startswith("/report"):
            self.redis("GET", "report")
            self.query(f"SELECT pg_sleep({SLOW_S})")
            self.query("SELECT 1")
        body = json.dumps({"path": self.path, "asked": self.asked}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def ask():
    client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
    for line in sys.stdin:
        path, trace = line.split()
        client.request("GET", path, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        print(client.getresponse().read().decode(), flush=True)
    client.close()


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
