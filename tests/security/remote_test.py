#!/usr/bin/python3
"""Who is let in over the network, who is not, and what each is told."""

import os
import socket
import ssl
import subprocess
import unittest
import warnings

from case import BIN, PATIENCE, Authority, CtlError, RemoteCase, RemoteCluster, run, wait_for

UNAVAILABLE = 14  # gRPC's code of a connection that broke
PERMISSION_DENIED = 7


class Jobs(RemoteCase):
    nodes = ("n1",)

    def test_a_job_of_a_remote_user_runs_on_a_remote_node(self):
        job = int(self.cluster.ctl_as("daemon", "submit", "--workdir", "/", "--output", "/dev/null", "--", "/bin/true")["id"])
        self.cluster.submitted.append(job)
        view = self.cluster.wait_state(job, "done")
        self.assertEqual((view["spec"]["user"], view["spec"]["uid"]), ("daemon", 1))

    def test_it_is_known_when_the_agents_certificate_ends(self):
        wait_for("the agent to say it", lambda: int(self.cluster.node_list()[0]["certificate_ends_us"]) > 0)

    def test_nobody_acts_on_anothers_job(self):
        job = int(self.cluster.ctl_as("daemon", "submit", "--workdir", "/", "--output", "/dev/null", "--", "/bin/sleep", "600")["id"])
        self.cluster.submitted.append(job)
        with self.assertRaisesRegex(CtlError, f"there is no job {job};"):
            self.cluster.ctl_as("nobody", "kill", job)
        self.assert_logged("user nobody", f"was refused an action on job {job} of daemon")
        self.cluster.ctl_as("daemon", "kill", job)
        self.cluster.wait_state(job, "cancelled")


class Revoked(RemoteCase):
    nodes = ("n1",)

    def test_a_user_is_not_let_in(self):
        self.cluster.ctl_as("nobody", "nodes")
        self.cluster.authority.make("revoke", "user-nobody")
        with self.assertRaises(CtlError):
            self.cluster.ctl_as("nobody", "nodes")
        self.assert_logged("a client is refused", "siding://user/nobody", "it has been revoked")
        self.assert_serving()

    def test_an_agent_is_cut_off_and_its_job_runs_on(self):
        job = int(self.cluster.ctl("submit", "--workdir", "/", "--output", "/dev/null", "--", "/bin/sleep", "600")["id"])
        self.cluster.submitted.append(job)
        self.cluster.wait_state(job, "running")
        self.cluster.authority.make("revoke", "node-n1")
        self.assert_logged("the agent of node n1 is cut off", "its certificate has been revoked")
        wait_for("the node to be down", lambda: self.cluster.node_list()[0]["state"] == "down")
        self.assertEqual(self.cluster.job(job)["state"], "running")
        # With another certificate, in the same files, it is back.
        self.cluster.authority.make("node", "n1", "--force")
        wait_for("the node to be up", lambda: self.cluster.node_list()[0]["state"] == "up")
        self.assertEqual(self.cluster.job(job)["state"], "running")
        self.cluster.ctl("kill", job)

    def test_a_call_under_way_ends(self):
        self.cluster.ctl_as("daemon", "nodes")
        connection = ("--controller", self.cluster.address, *self.cluster.authority.flags("user", "daemon"))
        following = subprocess.Popen([BIN / "sidingctl", *map(str, connection), "events", "--follow"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        self.addCleanup(following.wait)
        self.addCleanup(following.kill)
        self.cluster.authority.make("revoke", "user-daemon")
        wait_for("it to end", lambda: following.poll() is not None)

    def test_a_controller_is_not_spoken_to(self):
        self.cluster.authority.make("revoke", "controller")
        connection = self.cluster.ctl_connection()
        said = run(BIN / "sidingctl", *connection, "--revoked", self.cluster.authority.revoked, "nodes")
        self.assertEqual(said.returncode, 3)
        self.assertEqual(run(BIN / "sidingctl", *connection, "nodes").returncode, 0, "who keeps no list does not know")


class Certificates(RemoteCase):
    def ctl_with(self, *flags):
        return run(BIN / "sidingctl", "--controller", self.cluster.address, *flags, "nodes")

    def test_none_is_refused(self):
        self.assertEqual(self.call()[0], UNAVAILABLE)
        self.assert_logged("peer did not return a certificate")

    def test_sidingctl_says_that_there_is_none(self):
        self.assertIn("no certificate to show", self.ctl_with("--ca", self.cluster.authority.ca).stderr)

    def stranger(self):
        """root's certificate, of another authority."""
        return Authority(self.cluster.dir / "other").files("user", "root")

    def test_an_unknown_authority_is_refused(self):
        self.assertEqual(self.call("", *self.stranger())[0], UNAVAILABLE)
        self.assert_logged("siding://user/root", "it was not issued by a trusted authority")

    def test_sidingctl_says_that_the_authority_is_unknown(self):
        certificate, key = self.stranger()
        said = self.ctl_with("--ca", self.cluster.authority.ca, "--certificate", certificate, "--key", key).stderr
        self.assertRegex(said, f"certificate {certificate}: .*it was not issued by a trusted authority")

    def test_a_controller_of_an_unknown_authority_is_not_spoken_to(self):
        certificate, key = self.stranger()
        said = self.ctl_with("--ca", self.cluster.dir / "other" / "ca.pem", "--certificate", certificate, "--key", key)
        self.assertEqual(said.returncode, 3)
        self.assertIn("certificate verify failed", said.stderr)

    def expired(self):
        """A certificate of user nobody that has just expired, and what sidingctl says of it."""
        self.cluster.authority.make("user", "nobody", "--lifetime", "1s")
        flags = self.cluster.authority.flags("user", "nobody")
        return wait_for("the certificate to expire", lambda: (s := self.ctl_with(*flags).stderr) and "expired" in s and s)

    def test_an_expired_one_is_refused(self):
        self.expired()
        self.assertEqual(self.call("", *self.cluster.authority.files("user", "nobody"))[0], UNAVAILABLE)
        self.assert_logged("a client is refused", "siding://user/nobody: it expired at")

    def test_sidingctl_says_that_it_has_expired(self):
        self.assertRegex(self.expired(), "certificate .*user-nobody.pem: siding://user/nobody: it expired at")

    def test_a_user_without_an_account_is_refused(self):
        with self.assertRaisesRegex(CtlError, "user no-such-user has no account on the controller's machine"):
            self.cluster.ctl_as("no-such-user", "nodes")
        self.assert_logged("ListNodes from", "no-such-user has no account")

    def test_a_node_is_no_user(self):
        code, message = self.call("", *self.cluster.authority.files("node", "root"))
        self.assertEqual((code, message), (PERMISSION_DENIED, "the certificate of node root may not act as a user"))

    def test_an_authority_between_may_come_with_the_certificate(self):
        """As a site's own authority has it: root -> between -> certificate, and only root in the controller's ca."""
        folder, ca = self.cluster.dir / "site", self.cluster.authority.dir
        folder.mkdir()

        def openssl(*args):
            done = run("openssl", *args, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)

        def issue(name, extensions, issuer):
            (folder / "extensions").write_text(extensions)
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
                    "csr", "-subj", f"/CN={name}")
            by = ("-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key", "-CAcreateserial") if issuer else ("-signkey", f"{name}.key")
            openssl("x509", "-req", "-in", "csr", "-out", f"{name}.pem", "-days", "1", "-extfile", "extensions", *by)

        issue("root", "basicConstraints=critical,CA:TRUE", None)
        issue("between", "basicConstraints=critical,CA:TRUE", "root")
        issue("ada", "extendedKeyUsage=clientAuth\nsubjectAltName=URI:siding://user/nobody", "between")
        alone, chain, key = folder / "ada.pem", folder / "chain.pem", folder / "ada.key"
        chain.write_text(alone.read_text() + (folder / "between.pem").read_text())
        believed = self.cluster.dir / "ours.pem"  # what the client believes: the controller's is of our own
        believed.write_text((ca / "ca.pem").read_text())
        self.assertEqual(self.call(believed, chain, key)[0], UNAVAILABLE)
        (ca / "ca.pem").write_text(believed.read_text() + (folder / "root.pem").read_text())
        self.assertEqual(self.call(believed, chain, key)[0], 0)
        self.assertEqual(self.call(believed, alone, key)[0], UNAVAILABLE)
        self.assert_logged("siding://user/nobody", "it was not issued by a trusted authority")

    def test_a_renewed_one_of_the_controllers_is_used_without_a_restart(self):
        def serial():
            context = ssl.create_default_context(cafile=self.cluster.authority.ca)
            context.load_cert_chain(*self.cluster.authority.files("user", "root"))
            with socket.create_connection(("localhost", self.cluster.port)) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as secure:
                    return secure.getpeercert()["serialNumber"]
        before = serial()
        self.cluster.authority.make("controller", "localhost", "127.0.0.1", "--renew")
        wait_for("the new certificate", lambda: serial() != before)
        self.assert_serving()


    def test_a_broken_file_does_not_end_the_controller(self):
        path = self.cluster.authority.dir / "controller.pem"
        path.write_text("-----BEGIN CERTIFICATE-----\nnot one\n")
        def refused():
            return self.call("", *self.cluster.authority.files("user", "root"))[0] == UNAVAILABLE
        wait_for("the broken file to be noticed", refused)
        self.assertIsNone(self.cluster.controller.poll())
        self.cluster.authority.make("controller", "localhost", "127.0.0.1", "--renew")
        wait_for("the good file to be noticed", lambda: not refused())
        self.assert_serving()


class Agents(RemoteCase):
    def refusal(self, node, flags):
        """What an agent is told that may not be this node's."""
        log = self.cluster.logs / "refused.log"
        with open(log, "wb") as out:
            agent = subprocess.Popen([str(a) for a in (BIN / "siding-agent", "--node", node, "--state-dir", self.cluster.dir / "x",
                                                       "--controller", self.cluster.address, *flags)], stdout=out, stderr=out)
        try:
            return wait_for("a refusal", lambda: next((line for line in log.read_text().splitlines()
                                                       if "no connection to the controller: " in line), None))
        finally:
            agent.terminate()
            agent.wait(PATIENCE)

    def test_a_user_is_no_agent(self):
        said = self.refusal("n1", self.cluster.authority.flags("user", "root"))
        self.assertIn("the certificate of user root may not run an agent", said)
        self.assert_logged("agent from", "the certificate of user root may not run an agent")
        self.assertEqual(self.cluster.node_list(), [])

    def test_a_node_is_no_other_node(self):
        said = self.refusal("b", self.cluster.authority.flags("node", "a"))
        self.assertIn("the certificate of node a may not speak for node b", said)
        self.assert_logged("agent from", "the certificate of node a may not speak for node b")
        self.assertEqual(self.cluster.node_list(), [])


class Noise(RemoteCase):
    """A client may send anything; the controller continues."""

    def send(self, family, address, data):
        with socket.socket(family) as s:
            s.settimeout(PATIENCE)
            s.connect(address)
            try:
                s.sendall(data)
                while s.recv(65536):
                    pass
            except ConnectionError:
                pass  # hung up on, as it should be

    def send_to_tls(self, data):
        self.send(socket.AF_INET, ("127.0.0.1", self.cluster.port), data)

    def test_plain_http2_to_the_tls_port(self):
        self.send_to_tls(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
        self.assert_logged("Handshake failed")
        self.assert_serving()

    def test_garbage_to_the_tls_port(self):
        for _ in range(20):
            self.send_to_tls(os.urandom(10_000))
        self.assert_serving()

    def test_a_hello_that_breaks_off(self):
        self.send_to_tls(bytes.fromhex("16030100") + b"\x05\x01\x00\x00\x01\x03")
        self.assert_serving()

    def test_garbage_within_tls(self):
        context = ssl.create_default_context(cafile=self.cluster.authority.ca)
        context.load_cert_chain(*self.cluster.authority.files("user", "nobody"))
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(("localhost", self.cluster.port)) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                try:
                    secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(100_000))
                    while secure.recv(65536):
                        pass
                except (ConnectionError, ssl.SSLError):
                    pass
        self.assert_serving()

    def test_garbage_to_the_unix_socket(self):
        for _ in range(20):
            self.send(socket.AF_UNIX, str(self.cluster.socket), os.urandom(10_000))
        self.assert_serving()

    @unittest.skipIf(not ssl.HAS_TLSv1_1, "this Python cannot speak them")
    def test_old_versions_of_tls_are_refused(self):
        warnings.simplefilter("ignore", DeprecationWarning)  # it is what this test is about
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("localhost", self.cluster.port)) as plain:
            with self.assertRaises(OSError):
                context.wrap_socket(plain)
        self.assert_logged("unsupported protocol")


class LimitedCluster(RemoteCluster):
    def controller_args(self):
        path = self.dir / "sidingd.yaml"
        path.write_text("limits:\n  connections_per_host: 10\n")
        return (*super().controller_args(), "--config", path)


class Crowd(RemoteCase):
    def make_cluster(self):
        return LimitedCluster(self.nodes)

    def test_a_host_cannot_take_all_connections(self):
        idle = [socket.create_connection(("127.0.0.1", self.cluster.port)) for _ in range(30)]
        self.assert_logged("127.0.0.1 has 10 connections already", "connections_per_host is 10")
        self.assertEqual(run(BIN / "sidingctl", "--socket", self.cluster.socket, "nodes").returncode, 0)
        for one in idle:
            one.close()
        wait_for("the closed ones to make room", lambda: self.call("", *self.cluster.authority.files("user", "root"))[0] == 0)


class Starting(unittest.TestCase):
    def test_nothing_listens_without_tls(self):
        done = run(BIN / "sidingd", "--listen", "127.0.0.1:0", "--check-config")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing goes over a network without TLS", done.stderr)

    def test_a_file_that_is_missing_is_named(self):
        done = run(BIN / "sidingd", "--listen", "127.0.0.1:0", "--tls-ca", "/nonexistent/ca.pem", "--tls-certificate", "/c",
                   "--tls-key", "/k", "--check-config")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tls: ca: open /nonexistent/ca.pem", done.stderr)


if __name__ == "__main__":
    unittest.main()
