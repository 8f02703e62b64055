#!/usr/bin/python3
"""Requests that are announced and never finished cost the controller next to nothing, and end; others are served meanwhile.
bench/attack/flood.py prints the figures."""

import gzip
import pathlib
import sys
import unittest

from case import RemoteCase, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "attack"))
import http2  # noqa: E402
from flood import Flood, MungeCluster, resident  # noqa: E402

STREAMS = 1200


class Floods(RemoteCase):
    def make_cluster(self):
        return MungeCluster((), slots=1)

    def users(self):
        return http2.connect_unix(self.cluster.socket, "daemon")

    def stranger(self):
        return http2.connect_tls(self.cluster.port, self.cluster.authority.ca)

    def assert_withstood(self, connect, **options):
        for _ in range(20):
            self.cluster.ctl("nodes")
        pid = self.cluster.controller.pid
        before = resident(pid)
        with Flood(connect, STREAMS, **options) as flood:
            wait_for("all streams to be begun", lambda: flood.opened == STREAMS)
            most = 0

            def all_are_ended():
                nonlocal most
                most = max(most, resident(pid))
                self.assert_serving()
                return flood.ended == STREAMS
            wait_for("the controller to end them all", all_are_ended)
        self.assertLess(most, 2 * before, "MiB")
        self.assertLess(resident(pid), 2 * before, "MiB")
        return flood

    def test_a_users_requests_that_are_never_finished(self):
        self.assert_withstood(self.users)

    def test_a_strangers_requests_are_not_taken_at_all(self):
        flood = self.assert_withstood(self.stranger)
        # A stream's window is renewed only for who reads its message. (A connection's is renewed with every answer.)
        for connection in flood.connections:
            self.assertLessEqual(max(connection.begun.values()), http2.WINDOW)
        self.assert_logged("Submit from", "is refused", "MUNGE")

    def test_for_a_stream_of_answers_as_well(self):
        self.assert_withstood(self.users, method="Siding/Events")

    def test_no_user_is_taken_for_an_agent(self):
        self.assert_withstood(self.users, method="AgentGateway/Connect")

    def test_what_unpacks_to_a_thousand_times_as_much_is_refused(self):
        before = resident(self.cluster.controller.pid)
        packed = gzip.compress(bytes(1 << 30))
        c = http2.Connection(self.users())
        c.read(patience=5)
        stream = c.call("Siding/Submit", grpc_encoding="gzip")
        message, sent = b"\1" + len(packed).to_bytes(4, "big") + packed, 0

        def is_ended():
            nonlocal sent
            sent += c.put(stream, message[sent:sent + http2.FRAME])
            c.read()
            return stream in c.ended
        wait_for("the call to end", is_ended)
        c.socket.close()
        self.assertLess(resident(self.cluster.controller.pid), 2 * before, "MiB")


if __name__ == "__main__":
    unittest.main()
