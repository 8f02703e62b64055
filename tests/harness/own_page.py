"""`sidingctl page`, as whoever runs it has it: its address, what it answers, its end."""

import http.client
import json
import signal
import subprocess
import urllib.parse

from cluster import BIN, PATIENCE, wait_for


class OwnPage:
    def __init__(self, cluster, *args, uid=None):
        self.process = subprocess.Popen([str(a) for a in (BIN / "sidingctl", *cluster.ctl_connection(), "--json", "page", *args)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=uid, group=uid, cwd=cluster.dir)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.address = json.loads(line)["address"]
        parts = urllib.parse.urlsplit(self.address)
        self.port, self.token = parts.port, f"/?{parts.query}"
        self.cookie = None

    def connect(self, path, method="GET", cookie=None, body=None, **headers):
        """The connection, for its closing, and the response, of which nothing is read yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, headers={**named, **({"Cookie": cookie} if cookie else {})})
        return connection, connection.getresponse()

    def stranger(self, path, method="GET", **headers):
        """Status, headers and text, for one who has nothing but the address of the machine."""
        connection, response = self.connect(path, method, **headers)
        try:
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def open(self):
        status, headers, text = self.stranger(self.token)
        assert (status, headers["Location"]) == (303, "/"), text
        self.cookie = headers["Set-Cookie"].split(";")[0]
        wait_for("the page to hear the controller", lambda: self.ask("/api/v1/site")[0] == 200)
        return self

    def ask(self, path):
        """Status, and what was said, parsed, with the session of open()."""
        status, _, text = self.stranger(path, cookie=self.cookie)
        return status, json.loads(text)

    def order_token(self):
        return self.shown("/api/v1/session")["order_token"]

    def post(self, path, body, **headers):
        """Status, and what was said, parsed: of an order, or a question for a plan of one."""
        sent = {"Siding_Token": self.order_token(), "Content_Type": "application/json", **headers}
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        status, _, said = self.stranger(path, "POST", cookie=self.cookie, body=text, **{name: value for name, value in sent.items() if value is not None})
        return status, json.loads(said) if said else None

    def plan(self, verb, **of):
        return self.post("/api/v1/plans", {"verb": verb, **of})

    def order(self, verb, if_unchanged, key, **of):
        return self.post("/api/v1/orders", {"action": {"verb": verb, **of}, "if_unchanged": if_unchanged, "key": key})

    def next_event(self):
        """What an order rests on of which there is no plan."""
        return int(self.shown("/api/v1/site")["newest_event"]) + 1

    def shown(self, path):
        status, said = self.ask(path)
        assert status == 200, said
        return said

    def end(self, number=signal.SIGINT):
        """As by Ctrl-C; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return code
