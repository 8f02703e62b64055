#!/usr/bin/python3
"""The page of a controller that stands by says which one is active and where its page is; it becomes the cluster's page when that controller
takes over. Where both have one address, it is the active one's."""

import http.client
import json
import unittest

from case import PATIENCE, ClusterCase, wait_for
from pair import Pair
from ports import free_ports


class PagePair(Pair):
    """Each of the two controllers has a page; `same`: at one address."""

    def __init__(self, *args, same=False, **more):
        super().__init__(*args, **more)
        ports = free_ports(2)
        self.pages = {"a": ports[0], "b": ports[0] if same else ports[1]}

    def controller_argv(self, socket):
        return [*super().controller_argv(socket), "--page", f"127.0.0.1:{self.pages[socket.stem]}"]


class StandbyPageCase(ClusterCase):
    same = False

    def make_cluster(self):
        return PagePair(self.nodes, self.slots, policy=self.policy, same=self.same)

    def ask(self, name, path):
        """Status and JSON; nothing, if nobody is there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.pages[name], timeout=PATIENCE)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except OSError:
            return None
        finally:
            connection.close()

    def nodes_shown(self, name):
        answer = self.ask(name, "/api/v1/nodes")
        return answer is not None and answer[0] == 200 and len(answer[1]["nodes"])


class StandbyPage(StandbyPageCase):
    def test_it_names_the_active_one_until_it_is_that_itself(self):
        a = self.cluster.sidingds["a"]
        for path in ("/api/v1/nodes", "/api/v1/events"):
            status, said = self.ask("b", path)
            self.assertEqual(status, 503)
            self.assertIn(f"this controller stands by; the active one is pid {a.pid} on ", said["error"]["message"])
            active = said["error"]["active"]
            self.assertEqual(active["page"], f"http://127.0.0.1:{self.cluster.pages['a']}")
            self.assertTrue(active["is_here"])
        self.assertEqual(self.nodes_shown("a"), 2)
        self.cluster.kill9("a")
        wait_for("the page of b to show the cluster", lambda: self.nodes_shown("b") == 2)
        self.cluster.start_one("a")
        wait_for("the page of a to say that it stands by", lambda: (answer := self.ask("a", "/api/v1/site")) is not None and answer[0] == 503)
        active = self.ask("a", "/api/v1/site")[1]["error"]["active"]
        self.assertEqual(active["page"], f"http://127.0.0.1:{self.cluster.pages['b']}")


class OneAddress(StandbyPageCase):
    same = True

    def test_both_may_have_one_address_which_is_the_active_ones(self):
        self.assertEqual(self.nodes_shown("a"), 2)
        self.cluster.kill9("a")
        wait_for("b to serve the page", lambda: self.nodes_shown("b") == 2)
        self.cluster.start_one("a")
        wait_for("a to stand by", lambda: "standing by" in self.cluster.tail("sidingd-a", 3))
        self.assertEqual(self.nodes_shown("b"), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
