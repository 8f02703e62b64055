#!/usr/bin/python3
"""The page's server of a real controller, asked by a client that shares no code with it: what runs, what happens, across a restart,
and what it refuses."""

import http.client
import json
import socket
import unittest

from case import PATIENCE, Cluster, ClusterCase, wait_for
from ports import free_ports


class PageCluster(Cluster):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.page, = free_ports(1)

    def controller_argv(self, socket):
        return [*super().controller_argv(socket), "--page", f"127.0.0.1:{self.page}"]


class Follower:
    """Of server-sent events, as a browser reads them."""

    def __init__(self, port, last=None):
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.connection.request("GET", "/api/v1/events", headers=headers)
        self.response = self.connection.getresponse()
        self.last = None
        self.begin()

    def begin(self):
        """Knows where it is."""
        while self.last is None:
            self.line()

    def line(self):
        line = self.response.readline().decode().rstrip("\n")
        if line.startswith("id: "):
            self.last = int(line.removeprefix("id: "))
        return line

    def next(self):
        while True:
            line = self.line()
            if line.startswith("data: "):
                return json.loads(line.removeprefix("data: "))

    def close(self):
        self.connection.close()


class Page(ClusterCase):
    policy = ClusterCase.policy + "private_jobs: false\n"

    def make_cluster(self):
        return PageCluster(self.nodes, self.slots, policy=self.policy)

    def ask(self, path, method="GET", body=None, **headers):
        """Status, headers and what was said."""
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.page, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        text = response.read()
        return response.status, response.headers, json.loads(text) if text else None

    def follow(self, last=None):
        follower = Follower(self.cluster.page, last)
        self.addCleanup(follower.close)
        return follower

    def assert_follows_nodes(self, follower):
        """What happens to them it sees, and nothing of what has happened to jobs."""
        self.cluster.ctl("cordon", "n1")
        while "cordon" not in (event := follower.next())["kind"]:
            self.assertEqual(event["job"], "0")
        self.assertEqual(event["job"], "0")

    def shown(self, path):
        status, headers, said = self.ask(path)
        self.assertEqual(status, 200, said)
        self.assertEqual(headers["Content-Type"], "application/json")
        return said

    def test_what_runs_is_shown_and_what_happens(self):
        follower = self.follow()
        job = self.counter()
        self.wait_counting(job)
        self.assertEqual(sorted(node["name"] for node in self.shown("/api/v1/nodes")["nodes"]), ["n1", "n2"])
        wait_for("the page to say that the job runs", lambda: self.shown(f"/api/v1/jobs/{job}")["jobs"][0]["state"] == "running")
        listed, = self.shown("/api/v1/jobs?state=running")["jobs"]
        self.assertEqual(listed["id"], str(job))
        self.assertNotIn("counter.py", json.dumps(listed))
        self.assertGreater(int(self.shown("/api/v1/site")["now_us"]), 0)
        self.assertIn("private_jobs: false", self.shown("/api/v1/policy")["yaml"])
        self.end_job(job)
        self.assertEqual(self.shown("/api/v1/checkpoints")["checkpoints"], [])
        self.assert_follows_nodes(follower)

    def test_a_page_that_comes_back_has_missed_nothing(self):
        first = Follower(self.cluster.page)
        first.close()
        self.cluster.ctl("cordon", "n1")
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        wait_for("node n2 to be back", lambda: "n2" in [node["name"] for node in self.cluster.node_list()])
        self.cluster.ctl("cordon", "n2")
        again = self.follow(first.last)
        seen = []
        while sum("cordon" in event["kind"] for event in seen) < 2:
            seen.append(again.next())
        numbers = [int(event["seq"]) for event in seen]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreater(numbers[0], first.last)

    def test_what_it_refuses_it_refuses_with_a_reason(self):
        for path, method, status, words in [("/api/v1/jobs/999", "GET", 404, "999"), ("/api/v1/jobs/x", "GET", 400, "expected a number"),
                                            ("/odd", "GET", 404, "is not known"), ("/api/v1/jobs?state=odd", "GET", 400, "expected pending"),
                                            ("/api/v1/plan", "GET", 400, "start_by_us: expected"),
                                            ("/api/v1/plan?start_by_us=earliest", "GET", 403, "plans are made for users"), ("/api/v1/jobs", "POST", 405, "expected GET"), ("/api/v1/jobs", "DELETE", 405, "expected GET")]:
            got, headers, said = self.ask(path, method)
            self.assertEqual((got, said["error"]["status"]), (status, status), path)
            self.assertIn(words, said["error"]["message"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertEqual(self.ask("/api/v1/jobs", body=b"x" * 1000)[0], 413)
        self.assertEqual(self.ask("/api/v1/jobs", Host="evil.example")[0], 421)
        self.assertEqual(self.ask("/api/v1/jobs", Origin="http://evil.example")[0], 403)
        tag = self.ask("/api/v1/policy")[1]["ETag"]
        self.assertEqual(self.ask("/api/v1/policy", If_None_Match=tag)[0], 304)

    def test_a_crowd_harms_nobody(self):
        crowd = [socket.create_connection(("127.0.0.1", self.cluster.page)) for _ in range(400)]
        for one in crowd:
            one.close()
        self.assertEqual(self.cluster.ctl("nodes")["nodes"][0]["name"], "n1")
        wait_for("the page to answer", self._answers)

    def _answers(self):
        try:
            return self.ask("/api/v1/site")[0] == 200
        except (OSError, http.client.HTTPException):
            return False


class PrivatePage(Page):
    """With the policy's default: of jobs a stranger sees nothing."""
    policy = ClusterCase.policy

    def test_what_runs_is_shown_and_what_happens(self):
        follower = self.follow()
        job = self.counter()
        self.wait_counting(job)
        self.assertEqual(self.shown("/api/v1/jobs")["jobs"], [])
        self.assertEqual(self.ask(f"/api/v1/jobs/{job}")[0], 404)
        self.end_job(job)
        self.assert_follows_nodes(follower)


if __name__ == "__main__":
    unittest.main()
