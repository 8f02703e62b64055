#!/usr/bin/python3
"""Callers who do not read their answers, and who ask for plan after plan: the others are served meanwhile."""

import pathlib
import sys
import unittest

from case import PATIENCE, CtlError, RemoteCase, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import http2  # noqa: E402

CONNECTIONS, STREAMS = 15, 100  # more calls than the controller has threads
FOLLOW = b"\x10\x01"  # EventsRequest.follow


class Unread(RemoteCase):
    nodes = ("n1",)

    def flood(self, method, request=b"", takes=0):
        connections = []
        for _ in range(CONNECTIONS):
            c = http2.Connection(http2.connect_unix(self.cluster.socket, "daemon"), takes)
            self.addCleanup(c.socket.close)
            c.read(patience=PATIENCE)
            connections.append(c)
            for _ in range(min(STREAMS, c.most_streams)):
                c.ask(method, request)
        return connections

    def assert_others_are_served(self):
        before = int(self.cluster.node_list()[0]["last_heard_us"])
        wait_for("the node to be heard again", lambda: int(self.cluster.node_list()[0]["last_heard_us"]) > before)
        self.assertEqual(self.cluster.node_list()[0]["state"], "up")
        job = self.cluster.submit("--workdir", "/", "--output", "/dev/null", "--", "/bin/true")
        self.cluster.wait_state(job, "done")

    def test_answers_that_nobody_reads(self):
        self.flood("Siding/ShowPolicy")
        self.assert_others_are_served()

    def test_they_are_told_which_limit_it_is(self):
        self.flood("Siding/ShowPolicy")

        def is_told():  # at first the requests that are still arriving are what there are too many of
            try:
                self.cluster.ctl_as("daemon", "nodes")
                return False
            except CtlError as refused:
                return "limits.calls_per_user is 64" in str(refused)
        wait_for("the user to be told of limits.calls_per_user", is_told)

    def test_they_are_ended_and_give_their_places_back(self):
        connections = self.flood("Siding/ShowPolicy")

        def is_said():
            for c in connections:
                c.read()  # a connection that answers no ping is ended before
            return "ShowPolicy by user daemon is ended: nothing of the answer was read" in self.cluster.log()
        wait_for("the log to say so", is_said)

        def is_served():
            try:
                return self.cluster.ctl_as("daemon", "nodes")
            except CtlError:
                return False
        wait_for("the user to be served again", is_served)

    def test_events_that_nobody_reads(self):
        self.flood("Siding/Events", FOLLOW)
        self.assert_others_are_served()


if __name__ == "__main__":
    unittest.main()
