#!/usr/bin/python3
"""Who reads the page of a real controller that is on the network: by a client's certificate, by a proxy's word, or as a stranger; asked by
curl, and through nginx where there is one (it is in no list of deploy/setup: its package starts a server)."""

import http.server
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import unittest

from case import BIN, PATIENCE, RemoteCase, RemoteCluster, run, wait_for

NAME = "siding.example.org"
SECRET = "0123456789abcdef" * 4
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


class PageCluster(RemoteCluster):
    """`page`: where its page is. Of connections it lets one address have many, for tests in which all are of one."""
    page, more = "0.0.0.0:0", ""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.authority.make("controller", "localhost", "127.0.0.1", NAME, "--force")
        secret = self.dir / "proxy.secret"
        secret.write_text(SECRET + "\n")
        secret.chmod(0o600)
        self.config = f"page: {self.page}\npage_names: [{NAME}]\n" + self.more.format(secret=secret)

    @property
    def page_port(self):
        """Chosen by the kernel; the controller says it in its log."""
        found = re.findall(r"the page is served at https?://[0-9.]+:(\d+)", self.log())
        assert found and found[-1] != "0", "the controller has not said its page's port"
        return int(found[-1])


class PageCase(RemoteCase):
    nodes = ("n1",)
    policy = "operators: [daemon]\n"
    cluster_type = PageCluster
    scheme = "https"

    def make_cluster(self):
        return self.cluster_type(self.nodes, slots=1, policy=self.policy)

    def setUp(self):
        super().setUp()
        self.port = wait_for("the page's port", lambda: self.cluster.page_port)

    def curl(self, path, *args, port=None, name=NAME, scheme=None):
        """Status and what was said, parsed if it is JSON; (0, curl's words) where there was no answer."""
        done = run("curl", "--silent", "--show-error", "--max-time", PATIENCE, "--noproxy", "*", "--cacert", self.cluster.authority.ca,
                   "--resolve", f"{NAME}:{port or self.port}:127.0.0.1", "--write-out", "\n%{http_code}", *args,
                   f"{scheme or self.scheme}://{name}:{port or self.port}{path}")
        if done.returncode != 0:
            return 0, done.stderr
        text, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text) if text.startswith("{") else text

    def site(self, *args, **more):
        """(user, is_operator); a stranger is ("", False)."""
        status, said = self.curl("/api/v1/site", *args, **more)
        self.assertEqual(status, 200, said)
        return said["user"], said["is_operator"]

    def as_user(self, user):
        certificate, key = self.cluster.authority.files("user", user)
        return "--cert", certificate, "--key", key

    def order(self, verb, job, *args, token=None, **more):
        """Status and answer of an order that rests on all there is, with its reader's token unless another one is given."""
        if token is None:
            status, said = self.curl("/api/v1/session", *args, **more)
            if status != 200:
                return status, said
            token = said["order_token"]
        newest = int(self.curl("/api/v1/site", *args, **more)[1]["newest_event"])
        order = {"action": {"verb": verb, "job": job}, "if_unchanged": newest + 1, "key": f"{verb}-{newest}"}
        return self.curl("/api/v1/orders", "--json", json.dumps(order), "-H", f"Siding-Token: {token}", *args, **more)

    def assert_orders_as(self, user, job, *args, **more):
        """It is done, and by whom it was ordered is known."""
        self.assertEqual(self.order("suspend", job, *args, **more), (200, {"checkpoint": ""}))
        self.cluster.wait_state(int(job), "suspended")
        ordered, = [event for event in self.cluster.events(int(job)) if event["kind"] == "order-suspend"]
        self.assertEqual((ordered["by"], ordered["text"]), (user, f"freeze ordered: asked for by {user}"))

    def private_job(self):
        """One of nobody's."""
        job = int(self.cluster.ctl_as("nobody", "submit", "--workdir", "/", "--output", "/dev/null", "--", "/bin/sleep", "600")["id"])
        self.cluster.submitted.append(job)
        self.cluster.wait_state(job, "running")
        return str(job)

    def assert_serving(self):
        self.assertIsNone(self.cluster.controller.poll(), self.cluster.log())
        self.assertEqual([node["name"] for node in self.cluster.node_list()], ["n1"])


class ByCertificate(PageCase):
    def test_each_is_who_his_certificate_says_and_sees_what_he_may(self):
        job = self.private_job()
        for who, expected, jobs in (("daemon", ("daemon", True), [job]), ("nobody", ("nobody", False), [job]), ("bin", ("bin", False), [])):
            self.assertEqual(self.site(*self.as_user(who)), expected)
            self.assertEqual([one["id"] for one in self.curl("/api/v1/jobs", *self.as_user(who))[1]["jobs"]], jobs, who)
        self.assertEqual(self.site(), ("", False))
        self.assertEqual(self.curl("/api/v1/jobs")[1]["jobs"], [])
        self.assertEqual(self.curl(f"/api/v1/jobs/{job}/plans")[0], 404)
        self.cluster.ctl_as("nobody", "kill", job)
        self.cluster.wait_state(int(job), "cancelled")

    def test_each_orders_what_he_may(self):
        job = self.private_job()
        self.assertEqual(self.order("suspend", job, *self.as_user("bin"))[0], 404)
        self.assertEqual(self.curl("/api/v1/session")[0], 404, "a stranger")
        self.assertEqual(self.order("suspend", job, token=self.curl("/api/v1/session", *self.as_user("nobody"))[1]["order_token"])[0], 405)
        self.assert_orders_as("nobody", job, *self.as_user("nobody"))
        self.assertEqual(self.order("kill", job, *self.as_user("daemon"))[0], 200, "an operator")
        self.cluster.wait_state(int(job), "cancelled")

    def test_another_sites_page_orders_nothing(self):
        job, nobody = self.private_job(), self.as_user("nobody")
        other = self.curl("/api/v1/session", *self.as_user("daemon"))[1]["order_token"]
        for token in ("", "guessed", other):
            self.assertEqual(self.order("kill", job, *nobody, token=token)[0], 403, token)
        own = self.curl("/api/v1/session", *nobody)[1]["order_token"]
        for header in ("Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"):
            order = json.dumps({"action": {"verb": "kill", "job": job}, "if_unchanged": 1, "key": "k"})
            self.assertEqual(self.curl("/api/v1/orders", "--json", order, "-H", f"Siding-Token: {own}", "-H", header, *nobody)[0], 403, header)
        self.assertEqual(self.cluster.job(int(job))["state"], "running")
        self.cluster.ctl_as("nobody", "kill", job)
        self.cluster.wait_state(int(job), "cancelled")

    def test_who_may_not_is_told_why(self):
        status, said = self.curl("/api/v1/site", *self.as_user("no-such-user"))
        self.assertEqual(status, 403)
        self.assertIn("no account on the controller's machine", said["error"]["message"])
        certificate, key = self.cluster.authority.files("node", "root")
        status, said = self.curl("/api/v1/site", "--cert", certificate, "--key", key)
        self.assertEqual(status, 403)
        self.assertIn("the certificate of node root may not act as a user", said["error"]["message"])

    def test_a_bad_certificate_is_refused_in_the_handshake(self):
        self.cluster.authority.make("user", "bin", "--lifetime", "1s", "--force")
        wait_for("it to expire", lambda: self.curl("/api/v1/site", *self.as_user("bin"))[0] == 0)
        self.assert_logged("page: TLS: a client is refused", "siding://user/bin: it expired at")

    def test_headers_mean_nothing_without_a_proxy(self):
        self.assertEqual(self.site("-H", "X-Forwarded-User: daemon", "-H", f"Siding-Proxy-Secret: {SECRET}"), ("", False))

    def test_its_names_are_its_own(self):
        self.assertEqual(self.site(name="localhost"), ("", False))
        for args, status in ((("-H", "Host: evil.example"), 421), (("-H", "Origin: https://evil.example"), 403),
                             (("-H", f"Origin: http://{NAME}:{self.port}"), 403), (("-H", f"Origin: https://{NAME}:{self.port}"), 200)):
            self.assertEqual(self.curl("/api/v1/site", *self.as_user("daemon"), *args)[0], status, args)

    def test_a_renewed_certificate_is_used_without_a_restart(self):
        def serial():
            context = ssl.create_default_context(cafile=self.cluster.authority.ca)
            with socket.create_connection(("127.0.0.1", self.port)) as plain, context.wrap_socket(plain, server_hostname=NAME) as secure:
                return secure.getpeercert()["serialNumber"]
        before = serial()
        self.cluster.authority.make("controller", "localhost", "127.0.0.1", NAME, "--renew")
        wait_for("the new certificate", lambda: serial() != before)

    def test_plain_http_is_not_answered(self):
        self.assertEqual(self.curl("/", scheme="http")[0], 0)
        self.assertEqual(self.site(), ("", False))


class Crowd(PageCase):
    def test_a_thousand_connections_of_one_address_and_slow_handshakes_harm_nobody(self):
        crowd = []
        self.addCleanup(lambda: [one.close() for one in crowd])
        hello = bytes.fromhex("160301020001")  # the beginning of one
        for number in range(1000):
            one = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
            crowd.append(one)
            if number % 2:
                try:
                    one.sendall(hello)
                except OSError:
                    pass  # one too many
        self.assert_serving()
        self.assert_logged("page: ", "connection limit")
        for one in crowd:
            one.close()
        wait_for("the page to answer", lambda: self.curl("/api/v1/site")[0] == 200)

    def test_who_does_not_read_keeps_nobody_waiting(self):
        context = ssl.create_default_context(cafile=self.cluster.authority.ca)
        slow = []
        self.addCleanup(lambda: [one.close() for one in slow])
        for _ in range(50):
            plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
            one = context.wrap_socket(plain, server_hostname=NAME)
            one.sendall(f"GET /api/v1/policy HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode() * 100)
            slow.append(one)
        self.assertEqual(self.site(*self.as_user("daemon")), ("daemon", True))
        self.assert_serving()


class ProxyCluster(PageCluster):
    """Its page is where a proxy on the same machine comes from, and plain."""
    page, more = "127.0.0.1:0", "page_proxy: {{addresses: [127.0.0.1], secret: {secret}}}\n"


class ProxyCase(PageCase):
    cluster_type = ProxyCluster
    scheme = "http"

    def said(self, user, secret=SECRET):
        return "-H", f"X-Forwarded-User: {user}", "-H", f"Siding-Proxy-Secret: {secret}"


class ByProxy(ProxyCase):
    def test_its_word_is_taken_and_the_policy_says_the_rest(self):
        job = self.private_job()
        self.assertEqual(self.site(*self.said("daemon")), ("daemon", True))
        self.assertEqual(self.site(*self.said("nobody")), ("nobody", False))
        self.assertEqual([one["id"] for one in self.curl("/api/v1/jobs", *self.said("daemon"))[1]["jobs"]], [job])
        self.assertEqual(self.curl("/api/v1/jobs", *self.said("bin"))[1]["jobs"], [])
        self.assertEqual(self.order("kill", job, *self.said("daemon"), token="x")[0], 405, "its word is not good for orders")
        self.cluster.ctl_as("nobody", "kill", job)
        self.cluster.wait_state(int(job), "cancelled")

    def test_nobody_elses_is(self):
        other = ("--interface", "127.0.0.2")
        for args, words in ((("-H", "X-Forwarded-User: daemon"), "Siding-Proxy-Secret is not"), (self.said("daemon", "guessed"), "is not what"),
                            ((*self.said("daemon"), *other), "127.0.0.2 is none of its addresses"),
                            ((*self.said("daemon"), *other, "-H", "X-Forwarded-For: 127.0.0.1"), "127.0.0.2 is none of its addresses"),
                            ((*self.said("nobody"), "-H", "x-forwarded-user: daemon"), "several users"), (self.said("root"), "root is not known")):
            status, said = self.curl("/api/v1/site", *args)
            self.assertIn(status, (401, 403), args)
            self.assertIn(words, said["error"]["message"])
            self.assertNotIn(SECRET, str(said))
        self.assertEqual(self.site(), ("", False), "the proxy's neighbours are strangers")
        self.assert_logged("page: a reader from 127.0.0.2 is refused")

    def test_through_a_proxy(self):
        """A small one, that does what every one must: it replaces what its client says of himself."""
        backend, outer = self.port, self

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                done = outer.curl(self.path, *outer.said(self.headers.get("Test-Login", "nobody")), port=backend)
                body = json.dumps(done[1]).encode()
                self.send_response(done[0])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        through = {"port": server.server_port}
        self.assertEqual(self.site("-H", "Test-Login: daemon", **through), ("daemon", True))
        self.assertEqual(self.site("-H", "X-Forwarded-User: daemon", **through), ("nobody", False))

    @unittest.skipUnless(shutil.which(NGINX), "needs nginx")
    def test_through_nginx_as_documented(self):
        """With the password file of nginx in the place of oauth2-proxy."""
        folder = self.cluster.dir / "nginx"
        folder.mkdir()
        (folder / "users").write_text("daemon:{PLAIN}one\nnobody:{PLAIN}two\n")
        authority = self.cluster.authority
        (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/pid; error_log {folder}/error.log; user root; events {{}}
http {{ access_log off;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen unix:{folder}/unused; listen 127.0.0.1:0 ssl; server_name {NAME};
    ssl_certificate {authority.dir}/controller.pem; ssl_certificate_key {authority.dir}/controller.key;
    auth_basic siding; auth_basic_user_file {folder}/users;
    location / {{
      proxy_pass http://127.0.0.1:{self.port};
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-User $remote_user;
      proxy_set_header Siding-Proxy-Secret {SECRET};
    }} }} }}
""")
        from ports import free_ports
        port, = free_ports(1)
        conf = folder / "nginx.conf"
        conf.write_text(conf.read_text().replace("127.0.0.1:0 ssl", f"127.0.0.1:{port} ssl").replace(f"listen unix:{folder}/unused; ", ""))
        nginx = subprocess.Popen([NGINX, "-c", conf, "-p", folder, "-e", folder / "error.log"], stderr=subprocess.DEVNULL)
        self.addCleanup(nginx.wait)
        self.addCleanup(nginx.terminate)
        through = {"port": port, "scheme": "https"}
        wait_for("nginx to answer", lambda: self.curl("/api/v1/site", **through)[0] == 401)
        self.assertEqual(self.site("--user", "daemon:one", **through), ("daemon", True))
        self.assertEqual(self.site("--user", "nobody:two", "-H", "X-Forwarded-User: daemon", "-H", "X_Forwarded_User: daemon",
                                   "-H", "Siding-Proxy-Secret: x", "-H", "Connection: X-Forwarded-User, close", **through), ("nobody", False))
        self.assertEqual(self.curl("/api/v1/site", "--user", "daemon:one", "-H", "Origin: https://evil.example", **through)[0], 403)
        self.assertEqual(self.curl("/api/v1/site", "--user", "daemon:one", "-H", f"Origin: https://{NAME}:{port}", **through)[0], 200)


class OrderingProxyCluster(ProxyCluster):
    more = "page_proxy: {{addresses: [127.0.0.1], secret: {secret}, orders: true}}\n"


class OrdersByProxy(ProxyCase):
    cluster_type = OrderingProxyCluster

    def test_its_word_is_good_for_orders(self):
        job = self.private_job()
        self.assertEqual(self.order("suspend", job, *self.said("bin"))[0], 404)
        self.assert_orders_as("nobody", job, *self.said("nobody"))
        self.assertEqual(self.order("kill", job, *self.said("daemon"))[0], 200)
        self.cluster.wait_state(int(job), "cancelled")


class Refusals(unittest.TestCase):
    def test_what_does_not_go_together_is_said_at_once(self):
        for args, words in ((("--page", "0.0.0.0:7480"), "page: '0.0.0.0:7480'; expected 127.0.0.1:PORT or [::1]:PORT, or tls.ca"),
                            (("--page", "localhost:7480"), "page: 'localhost:7480'"), (("--page-name", "a"), "page is not"),
                            (("--page", "127.0.0.1:0", "--page-name", "a:1"), "--page-name: 'a:1'; expected names of hosts")):
            done = run(BIN / "sidingd", "--check-config", *args)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
