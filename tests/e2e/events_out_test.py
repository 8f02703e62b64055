#!/usr/bin/python3
"""Other programs are told of events: each of them at least once and in their order, whatever dies meanwhile."""

import hashlib
import hmac
import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from case import Cluster, ClusterCase, CtlError, wait_for  # noqa: E402

KEY = "0123456789abcdef0123456789abcdef"


class Hook:
    """A receiver that does what docs/admin/events.md tells its author to do."""

    def __init__(self, port=0, certificate=None, heard=()):
        self.events, self.strange, self.refused, self.answer, self.lock = list(heard), [], 0, 200, threading.Lock()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = hook.hear(self.headers, body)
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hear(self, headers, body):
        stamp = headers["Siding-Timestamp"]
        expected = hmac.new(KEY.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        with self.lock:
            if not hmac.compare_digest(headers["Siding-Signature"], "sha256=" + expected) or abs(time.time() - int(stamp)) > 300:
                self.strange.append(body)
                return 403
            if self.answer == 200:
                self.events += json.loads(body)["events"]
            else:
                self.refused += 1
            return self.answer

    def seqs(self):
        with self.lock:
            return [int(e["seq"]) for e in self.events]

    def kinds(self):
        with self.lock:
            return [e["kind"] for e in self.events]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def first_time(seqs):
    """Each where it came first: what is told again is allowed."""
    return list(dict.fromkeys(seqs))


class EventsOut(ClusterCase):
    nodes = ("n1",)

    def make_cluster(self):
        cluster = Cluster(self.nodes, self.slots, policy=self.policy)
        key = cluster.dir / "hook.key"
        key.write_text(KEY + "\n")
        key.chmod(0o600)
        self.hook = self.make_hook(cluster)
        self.addCleanup(self.hook.close)
        cluster.config = f"events_to:\n  - {{name: hook, url: '{self.url()}', secret: {key}{self.more(cluster)}}}\n"
        return cluster

    def make_hook(self, cluster):
        return Hook()

    def url(self):
        return f"http://127.0.0.1:{self.hook.port}/siding"

    def more(self, cluster):
        return ""

    def finish_a_job(self):
        job = self.counter()
        self.wait_counting(job)
        self.end_job(job)
        return job

    def known(self):
        """The numbers of all events that the controller has: it has told them from its first start on."""
        return [int(event["seq"]) for event in self.cluster.ctl("events")]

    def wait_told_all(self):
        wait_for("the hook to know all events", lambda: self.hook.seqs() and first_time(self.hook.seqs()) == self.known())
        self.assertEqual(self.hook.strange, [])


class Webhook(EventsOut):
    def test_it_is_told_all_events_in_their_order(self):
        self.finish_a_job()
        self.wait_told_all()
        for kind in ("submitted", "place", "started", "succeeded"):
            self.assertIn(kind, self.hook.kinds())

    def test_one_that_was_away_is_told_afterwards(self):
        self.finish_a_job()
        self.wait_told_all()
        port = self.hook.port
        self.hook.close()
        heard = self.hook.events
        self.finish_a_job()
        self.hook = Hook(port, heard=heard)
        self.addCleanup(self.hook.close)
        self.wait_told_all()

    def test_what_it_refuses_is_told_again(self):
        self.hook.answer = 500
        self.finish_a_job()
        wait_for("some to be refused", lambda: self.hook.refused > 1)
        self.assertEqual(self.hook.seqs(), [])
        self.hook.answer = 200
        self.wait_told_all()

    def test_nothing_is_left_out_when_the_controller_is_killed(self):
        for _ in range(3):
            job = self.counter()
            self.cluster.kill9_controller()
            self.cluster.start_controller()
            self.wait_counting(job)
            self.end_job(job)
        self.wait_told_all()

    def test_what_was_told_just_before_it_died_is_told_again(self):
        self.finish_a_job()
        self.wait_told_all()
        self.cluster.variables["sidingd"] = {"SIDING_FAULT": "notify.told=kill"}
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        try:
            self.cluster.ctl("cordon", "n1")
        except CtlError:
            pass  # it died before it could answer
        wait_for("the controller to die", lambda: self.cluster.controller.poll() is not None)
        self.cluster.variables["sidingd"] = {}
        self.cluster.start_controller()
        self.cluster.ctl("uncordon", "n1")
        self.wait_told_all()
        self.assertGreater(len(self.hook.seqs()), len(set(self.hook.seqs())))


class Encrypted(EventsOut):
    """Its certificate is of an authority of the site."""

    def make_hook(self, cluster):
        self.certificate, key = cluster.dir / "hook.pem", cluster.dir / "hook-tls.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=hook", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.certificate],
                       check=True, capture_output=True)
        return Hook(certificate=(self.certificate, key))

    def url(self):
        return f"https://localhost:{self.hook.port}/siding"

    def more(self, cluster):
        return f", ca: {self.certificate}"

    def test_it_is_told_by_tls(self):
        self.finish_a_job()
        self.wait_told_all()


class Stranger(Encrypted):
    """Its certificate is of nobody whom this machine believes."""

    def more(self, cluster):
        return ""

    def test_it_is_told_by_tls(self):
        self.finish_a_job()
        said = "hook could not be told: of events from 1 (submitted) on: SSL peer certificate"
        wait_for("the controller to say why", lambda: said in (self.cluster.logs / "sidingd.log").read_text())
        self.assertEqual((self.hook.seqs(), self.hook.strange), ([], []))


if __name__ == "__main__":
    unittest.main()
