#!/usr/bin/python3
"""Requests that are announced and never finished cost the controller next to nothing, and end; others are served meanwhile.
bench/attack/flood.py prints the figures."""

import gzip
import pathlib
import sys
import unittest

from case import ONE_HEAP, PATIENCE, RemoteCase, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "attack"))
import http2  # noqa: E402
from flood import ANNOUNCED, Flood, MungeCluster, most_resident  # noqa: E402

STREAMS = 1200
KIB_A_STREAM = 24  # at most
REQUESTS = 10  # at most so much memory as the announced ones of so many streams have
MIB_OF_A_REFUSAL = 32  # at most, of what would be a GiB


class Floods(RemoteCase):
    def make_cluster(self):
        return MungeCluster((), slots=1, env=ONE_HEAP)

    def users(self):
        return http2.connect_unix(self.cluster.socket, "daemon")

    def stranger(self):
        return http2.connect_tls(self.cluster.port, self.cluster.authority.ca)

    def assert_withstood(self, connect, **options):
        for _ in range(20):
            self.cluster.ctl("nodes")
        most = [most_resident(self.cluster.controller.pid)]
        for streams in STREAMS, 2 * STREAMS:
            with Flood(connect, streams, **options) as flood:
                wait_for("all streams to be begun", lambda: flood.opened == streams)

                def all_are_ended():
                    self.assert_serving()
                    return flood.ended == streams
                wait_for("the controller to end them all", all_are_ended)
            most.append(most_resident(self.cluster.controller.pid))
        print(f"{self.id().split('.')[-1]}: {most[0]:.1f} MiB, under a flood {most[1]:.1f}, of twice as many {most[2]:.1f}", flush=True)
        # What the allocator keeps is there after the first flood: the second one adds what streams cost.
        self.assertLess(most[2] - most[1], STREAMS * KIB_A_STREAM / 1024, "MiB")
        self.assertLess(most[2] - most[0], REQUESTS * ANNOUNCED / 2**20, "MiB")
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
        before = most_resident(self.cluster.controller.pid)
        packed = gzip.compress(bytes(1 << 30))
        c = http2.Connection(self.users())
        c.read(patience=PATIENCE)
        stream = c.call("Siding/Submit", grpc_encoding="gzip")
        message, sent = b"\1" + len(packed).to_bytes(4, "big") + packed, 0

        def is_ended():
            nonlocal sent
            sent += c.put(stream, message[sent:sent + http2.FRAME])
            c.read()
            return stream in c.ended
        wait_for("the call to end", is_ended)
        c.socket.close()
        self.assertLess(most_resident(self.cluster.controller.pid) - before, MIB_OF_A_REFUSAL, "MiB")


if __name__ == "__main__":
    unittest.main()
