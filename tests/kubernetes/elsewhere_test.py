#!/usr/bin/python3
"""Pods that make way for a pod with a deadline on their node, and go on on another node while that one runs."""

from agent_case import REDIS, lines_of
from case import PODS, main, wait_for
from checkpoint_case import COUNT, CheckpointCase
from kubernetes_image import write_redis_image

SHELL = """n=0 sum=7
while sleep 0.05; do
  sum=$(((sum * 31 + n) % 1000003))
  echo "$n $sum"
  echo "$n $sum" >> /scratch/count
  n=$((n + 1))
done"""


def shell_lines(count):
    """What SHELL has written by the time that it has written so many lines."""
    total, lines = 7, []
    for number in range(count):
        total = (total * 31 + number) % 1000003
        lines.append(f"{number} {total}\n")
    return lines


class Elsewhere(CheckpointCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.start_node_with_agent()
        for node in cls.bed.nodes:
            node.add_image(REDIS, write_redis_image, cls.bed.programs / "redis")

    def setUp(self):
        super().setUp()
        self.open(self.other, False)

    def run_first(self, name, volumes=None, **container):
        """A Job on the first node, of which siding knows that it runs. Returns its pod."""
        pod = self.job(name, COUNT, annotations={"siding.dev/preemptible": "checkpoint,suspend"},
                       container={"resources": {"requests": {"cpu": self.cpus()}}, **container},
                       **({"volumes": volumes} if volumes else {}))
        self.wait_state(name, "running")
        return pod

    def go_elsewhere(self, name, first):
        """It makes way for a pod that stays on its node. Returns the one in its place, on the other node."""
        self.open(self.other)
        body = self.annotated(f"{name}-steer", {"start-by": "+10m"}, schedulerName="siding",
                              nodeSelector={"kubernetes.io/hostname": self.bed.node.name})
        self.made(PODS, body)
        self.addCleanup(self.finish, f"{name}-steer")
        self.wait_running(f"{name}-steer")
        second = self.wait_pod_of(name, but=[first])
        self.assertEqual(second["spec"]["nodeName"], self.other.name)
        self.wait_state(name, "running")
        self.assert_blameless(name)
        return second

    def test_python_that_was_suspended_goes_on(self):
        first = self.run_first("python")
        self.wait_lines(first, 10)
        [job] = self.of_owner("python")
        self.ctl("suspend", job["id"])
        self.wait_state("python", "suspended")
        self.ctl("resume", job["id"])
        self.wait_state("python", "running")
        self.go_elsewhere("python", first)
        self.assert_went_on("python", first)

    def test_python_that_is_suspended_keeps_its_node_and_can_be_vacated(self):
        first = self.run_first("held")
        self.wait_lines(first, 10)
        [job] = self.of_owner("held")
        self.ctl("suspend", job["id"])
        self.wait_state("held", "suspended")
        body = self.annotated("held-steer", {"start-by": "+10m"}, schedulerName="siding",
                              nodeSelector={"kubernetes.io/hostname": self.bed.node.name})
        self.made(PODS, body)
        self.addCleanup(self.finish, "held-steer")
        [said] = wait_for("the refusal", lambda: self.events("held-steer", "SidingRefused"))
        self.assertIn("resume or vacate it", said)
        self.open(self.other)
        self.open(self.bed.node, False)
        self.addCleanup(self.open, self.bed.node)
        self.ctl("vacate", job["id"])
        second = self.wait_pod_of("held", but=[first])
        self.assertEqual(second["spec"]["nodeName"], self.other.name)
        self.wait_state("held", "running")
        self.assert_blameless("held")
        self.assert_went_on("held", first)

    def test_a_pod_with_a_folder_that_is_the_same_on_all_nodes_goes_on(self):
        folder = self.siding.same / "counts"
        folder.mkdir()
        first = self.run_first("folder", volumes=[{"name": "scratch", "hostPath": {"path": str(folder)}}])
        self.wait_lines(first, 10)
        second = self.go_elsewhere("folder", first)
        self.wait_lines(second, 10)
        self.assertGreaterEqual(int(self.log(second).split(" ", 1)[0]), 10)
        text = (folder / "count").read_text()
        lines = text[:text.rindex("\n") + 1].splitlines(keepends=True)
        self.assertEqual(lines, lines_of(len(lines)))

    def test_a_pod_with_another_folder_of_its_node_is_left_alone(self):
        folder = self.siding.same.with_name(f"{self.siding.same.name}-not")
        folder.mkdir()
        pod = self.job("other", COUNT, annotations={"siding.dev/preemptible": "checkpoint"},
                       volumes=[{"name": "scratch", "hostPath": {"path": str(folder)}}])
        [said] = wait_for("the refusal", lambda: self.events(pod["metadata"]["name"], "SidingRefused"))
        self.assertIn("not one that is the same on all nodes", said)

    def test_a_shell_goes_on(self):
        first = self.run_first("shell", command=["bash", "-c", SHELL], args=[])
        self.wait_lines(first, 10)
        second = self.go_elsewhere("shell", first)
        self.wait_lines(second, 10)
        self.assertGreaterEqual(int(self.log(second).split(" ", 1)[0]), 10)
        text = self.file(second, "/scratch/count")
        lines = text[:text.rindex("\n") + 1].splitlines(keepends=True)
        self.assertEqual(lines, shell_lines(len(lines)))

    def test_redis_goes_on_with_its_data(self):
        first = self.run_first("redis", image=REDIS, args=["--protected-mode", "no", "--appendonly", "yes", "--dir", "/scratch"])
        wait_for("redis to be ready", lambda: "Ready to accept connections" in self.log(first))
        self.assertEqual(self.ask(first, *(f"SET key{number} {number}" for number in range(1000))), ["+OK"] * 1000)
        second = self.go_elsewhere("redis", first)
        self.assertEqual(self.ask(second, "DBSIZE", "INCR key41"), [":1000", ":42"])


if __name__ == "__main__":
    main(root=True)
