#!/usr/bin/python3
"""A client with the certificate of one node sends anything: the controller lives, answers, does not grow, and jobs on
other nodes are not touched. What it sends is in one line of the log, and then counted."""

import json
import pathlib
import subprocess
import sys
import threading
import time
import unittest

from case import BIN, ONE_HEAP, PATIENCE, RemoteCase, RemoteCluster, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "attack"))
import http2  # noqa: E402
from flood import field, most_resident  # noqa: E402
from vanishing import may_be_gone, paths  # noqa: E402

MIB = 1 << 20
FLOOD = 3000  # more than is read at once
REPORTS, NOTE = 50, 3_900_000
# Of a Hello, in milliseconds: what it costs, and what can be had at once (controller/gateway/node_pace.h).
HELLO, BURST = 100, 10_000


class Liar:
    """A stream with the certificate of node `liar`. Not thread-safe."""

    def __init__(self, cluster, node="liar", connection=1, **hello):
        self.caller = subprocess.Popen(
            [BIN / "siding-test-caller", cluster.address, cluster.authority.ca, *cluster.authority.files("node", "liar"),
             "AgentGateway/Connect"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.heard = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.say(hello={"node": node, "agent": "x", "bootId": "b", "connection": connection,
                        "capacity": {"slots": 4, "memory": 1 << 32}, **hello})

    def say(self, **message):
        try:
            self.caller.stdin.write(json.dumps(message) + "\n")
            self.caller.stdin.flush()
        except BrokenPipeError:
            pass  # hung up on, as it may be

    def report(self, job, phase, incarnation=1, rank=0, **more):
        self.say(report={"task": {"job": str(job), "incarnation": incarnation, "rank": rank}, "phase": phase, **more})

    def welcomed(self):
        wait_for("the welcome", lambda: any("welcome" in line for line in self.heard))
        return self

    def end(self):
        """How it ended: code and message."""
        try:
            self.caller.stdin.close()
        except BrokenPipeError:
            pass
        self.caller.wait(PATIENCE)
        self.reader.join()
        self.caller.stdout.close()
        return self.heard[-1] if self.heard else ""

    def kill(self):
        self.caller.kill()
        self.end()

    def _read(self):
        for line in self.caller.stdout:
            self.heard.append(line)


class Dialler(http2.Connection):
    """The same agent over and over, faster than a process each could be."""

    def __init__(self, cluster):
        super().__init__(http2.connect_tls(cluster.port, cluster.authority.ca, *cluster.authority.files("node", "liar")))
        self.dials, self.welcomed = 0, set()

    def dial(self):
        """Whether it is welcomed."""
        self.dials += 1
        capacity = field(1, 4) + field(2, 1 << 32)
        hello = (field(1, b"liar") + field(2, b"b") + field(3, capacity) + field(10, b"x") + field(11, self.dials))
        message = field(1, hello)
        stream = self.call("AgentGateway/Connect")
        self.send(http2.frame(http2.DATA, 0, stream, b"\0" + len(message).to_bytes(4, "big") + message))
        wait_for("an answer", lambda: self.read(patience=1) or stream in self.welcomed | self.ended or not self.open)
        return stream in self.welcomed

    def _take(self, kind, flags, stream, payload):
        if kind == http2.DATA and payload:
            self.welcomed.add(stream)
        super()._take(kind, flags, stream, payload)


class LyingNode(RemoteCase):
    nodes = ("n1",)

    def make_cluster(self):
        return RemoteCluster(self.nodes, slots=1, env=ONE_HEAP)

    def setUp(self):
        super().setUp()
        self.cluster.authority.make("node", "liar")
        self.job = self.cluster.submit("--workdir", "/", "--output", "/dev/null", "--", "/bin/sleep", "600")
        self.before = self.cluster.wait_state(self.job, "running")
        self.events = self.cluster.events(self.job)

    def connect(self, **hello):
        liar = Liar(self.cluster, **hello)
        self.addCleanup(liar.kill)
        return liar

    def journal(self):
        """MiB."""
        size = 0
        for file in paths(self.cluster.dir / "controller", "**/*"):
            with may_be_gone():
                size += file.stat().st_size if file.is_file() else 0
        return size / MIB

    def assert_unharmed(self):
        self.assert_serving()
        self.assertEqual(self.cluster.events(self.job), self.events)
        now = self.cluster.job(self.job)
        self.assertEqual((now["state"], now["nodes"]), ("running", self.before["nodes"]))

    def assert_taken(self, liar):
        """All that it has said before."""
        liar.report(999_999, "RUNNING", incarnation=-7)
        self.assert_logged("node liar", "report: task: incarnation: expected a number from 0")

    def test_another_nodes_tasks(self):
        liar = self.connect().welcomed()
        for phase in ("EXITED", "LOST", "PREPARED", "CHECKPOINTED", "SAVED", "LAUNCH_FAILED", "RESTORE_FAILED"):
            for incarnation in (0, 1, 2, 1_000_000_000):
                liar.report(self.job, phase, incarnation, imageDamaged=True, checkpoint=f"{self.job}.1", imageBytes="1")
        liar.report(self.job, "RUNNING", 99, spec={"clusterManager": "slurm", "nodes": 1})
        self.assert_taken(liar)
        self.assert_unharmed()

    def test_anothers_image_is_neither_whole_nor_damaged(self):
        self.cluster.ctl("checkpoint", self.job, "--tier", "shared")
        wait_for("the job to continue", lambda: any(e["kind"] == "continued" for e in self.cluster.events(self.job)))
        self.events = self.cluster.events(self.job)
        [image] = self.cluster.ctl("checkpoints", "list")["checkpoints"]
        checkpoint = image["id"]
        liar = self.connect().welcomed()
        liar.say(heartbeat={"ramAvailable": "1", "damaged": [
            {"checkpoint": checkpoint, "tier": tier, "rank": rank, "problem": "x"} for tier in ("LOCAL", "SHARED") for rank in (0, 1)]})
        for op in range(2000):
            liar.say(result={"op": str(op), "code": 0})
        liar.report(self.job, "RESTORE_FAILED", imageDamaged=True, checkpoint=checkpoint)
        self.assert_taken(liar)
        self.assert_unharmed()
        [image] = self.cluster.ctl("checkpoints", "list")["checkpoints"]
        self.assertEqual(image["state"], "good")

    def test_numbers_that_cannot_be(self):
        liar = self.connect().welcomed()
        for rate in ("NaN", "Infinity", "-Infinity", -1):
            liar.say(heartbeat={"ramAvailable": "1", "shared": {"dump": {"bytesPerSecond": rate}}})
        self.assert_logged("node liar", "heartbeat: shared: dump: bytes_per_second: expected a number from 0")
        liar.say(heartbeat={"ramAvailable": str(-2**63)})
        self.assert_logged("node liar", "ram_available: expected a number from 0")
        # One that can be, and with which nothing is ever done.
        slow = {"bytesPerSecond": 5e-324, "overheadUs": "1", "spread": 100}
        liar.say(heartbeat={"ramAvailable": "1", **{t: {"dump": slow, "restore": slow} for t in ("local", "shared", "gpu")}})
        self.assert_taken(liar)
        self.assert_unharmed()

    def test_texts_that_fill_the_memory(self):
        liar = self.connect().welcomed()
        most = [most_resident(self.cluster.controller.pid)]
        for first in 1_000_000, 2_000_000:
            for i in range(REPORTS):
                liar.report(first + i, "RUNNING", notes=["x" * NOTE])
            liar.say(heartbeat={"ramAvailable": str(-first)})
            self.assert_logged("node liar", "ram_available: expected a number from 0 to", f", got {-first}")
            most.append(most_resident(self.cluster.controller.pid))
        print(f"{most[0]:.1f} MiB, after long texts {most[1]:.1f}, after twice as many {most[2]:.1f}", flush=True)
        # What the allocator keeps of reading them is there after the first ones: the others add what is kept of them.
        self.assertLess(most[2] - most[1], REPORTS * NOTE / MIB / 10, "MiB")
        self.assertLess(most[2] - most[0], 60, "MiB")
        self.assert_unharmed()

    def test_claims_that_fill_the_journal(self):
        liar = self.connect().welcomed()
        before = self.journal()
        for i in range(25):
            liar.report(2_000_000 + i, "RUNNING", spec={"clusterManager": "slurm", "nodes": 1, "env": {"A": "x" * 3_000_000}})
        claims = [{"task": {"job": str(3_000_000 + i), "incarnation": 1}, "phase": "RUNNING",
                   "spec": {"clusterManager": "slurm", "nodes": 1}} for i in range(20_000)]
        liar.say(heartbeat={"ramAvailable": "1", "tasks": claims})
        self.assert_logged("node liar reports more than 1200 starts")
        self.assertLess(self.journal(), before + 20, "MiB")
        self.assert_unharmed()

    def test_a_flood_of_messages(self):
        liar = self.connect().welcomed()
        for _ in range(FLOOD):
            liar.say(heartbeat={"ramAvailable": "-1"})
        self.assert_logged("the agent of node liar sends more than an agent does")
        self.assert_logged("node liar: further lines are counted only")
        self.assert_unharmed()
        said = [line for line in self.cluster.log().splitlines() if "a message from the agent of node liar is ignored" in line]
        self.assertLess(len(said), 100)

    def test_a_hello_as_long_as_it_may_be(self):
        liar = self.connect(criu="c\n" * 200_000, version="\x1b]0;x", fenceProblem="p" * 200_000,
                            gpus=[{"uuid": "u" * 2000, "name": "\x1b[2J"}] * 500,
                            tasks=[{"task": {"job": str(10 + i), "incarnation": 1}, "phase": "RUNNING"} for i in range(20_000)])
        liar.welcomed()
        self.assertLess(len(json.dumps(self.cluster.node_list())), MIB)
        self.assert_unharmed()

    def test_a_hello_that_cannot_be(self):
        for wrong in ({"capacity": {"slots": -1}}, {"capacity": {"gpus": 2**31 - 1}}, {"gpus": [{"uuid": "u"}] * 5000},
                      {"tasks": [{"task": {"job": "-1", "incarnation": 1}}]}, {"node": "n1"}, {"node": ""}):
            with self.subTest(**{k: str(v)[:50] for k, v in wrong.items()}):
                self.assertRegex(self.connect(**wrong).end(), "^(3|7) ")
        self.assert_unharmed()

    def test_taking_its_own_connections_place_again_and_again(self):
        dialler = Dialler(self.cluster)
        self.addCleanup(dialler.socket.close)
        began = time.monotonic()
        while dialler.dial():
            passed = time.monotonic() - began
            self.assertLess(passed, PATIENCE, "a second takes so few dials")
            # However long it took: no more than that.
            self.assertLessEqual(len(dialler.welcomed), (BURST + 1000 * passed) / HELLO + 1)
        self.assert_logged("agent from", "node liar dials or sends too often")
        self.assertGreater(len(dialler.welcomed), BURST / HELLO / 2)

        def one_is_left():
            dialler.read()
            return len(dialler.welcomed - dialler.ended) == 1
        wait_for("each but the last of them to be ended", one_is_left)
        wait_for("it to be let in again", dialler.dial)
        self.assert_unharmed()


if __name__ == "__main__":
    unittest.main()
