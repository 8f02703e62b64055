#!/usr/bin/python3
"""Orders by hand: those that come while the image of a job is written on schedule wait for it, and are carried out then; and what one
would do is said before it is given."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from case import ClusterCase, CtlError, wait_for  # noqa: E402
from cluster import BIN  # noqa: E402
from machines import Machines  # noqa: E402


class WhileItIsSaved(ClusterCase):
    """The agent stops with the first image, which is whole and of which nobody has been told, until it is let go."""

    nodes = ("machine1", "machine2")
    point = "agent.dump.sealed"

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.hold = cluster.dir / "hold"
        for node in self.nodes:
            cluster.variables[node] = {"SIDING_FAULT": f"{self.point}=hold={self.hold}"}
        return cluster

    def setUp(self):
        super().setUp()
        self.job = self.counter(8, 1, "suspend,checkpoint", "--checkpoint-interval", "2s")
        self.wait_counting(self.job)
        wait_for("an agent to come to the end of the image", lambda: any(
            f"fault: {self.point}=hold" in (self.cluster.logs / f"agent-{node}.log").read_text() for node in self.nodes))
        self.assertEqual(self.cluster.state(self.job), "dumping")

    def let_go(self):
        self.hold.touch()

    def start(self, *args):
        return subprocess.Popen([str(BIN / "sidingctl"), "--socket", str(self.cluster.socket), *map(str, args)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_ordered(self):
        self.cluster.wait_event(self.job, "order-waits")

    def finish(self, verb):
        out, err = verb.communicate(timeout=600)
        self.assertEqual(verb.returncode, 0, err)
        return out, err

    def orders(self):
        """What was ordered of the job, and what came of it, from the order that waited on."""
        kinds = [e["kind"] for e in self.cluster.events(self.job)]
        return kinds[kinds.index("order-waits"):]

    def test_a_vacate_is_done_with_an_image_of_its_own(self):
        verb = self.start("vacate", self.job)
        self.wait_ordered()
        self.assertIn(f"vacate waits until checkpoint {self.job}.1 is made", self.cluster.job(self.job)["waits_for"])
        explained = self.start("explain", self.job)
        self.assertIn("vacate waits until checkpoint", self.finish(explained)[0])
        self.let_go()
        out, err = self.finish(verb)
        self.assertIn("has left its nodes", out)
        self.assertIn("vacate waits until checkpoint", err)
        orders = self.orders()
        self.assertEqual(orders[:4], ["order-waits", "commit", "continued", "order-dump"], orders)
        self.assertIn("released", orders)
        self.assert_counted(self.job)

    def test_a_migration_outlasts_the_controller(self):
        other = next(n for n in self.nodes if n not in self.cluster.job(self.job)["nodes"])
        self.cluster.ctl("migrate", "--no-wait", "--to", other, self.job)
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assertIn("migrate waits until", self.cluster.job(self.job)["waits_for"])
        self.let_go()
        self.cluster.wait_event(self.job, "restored")
        self.assertEqual(self.cluster.job(self.job)["nodes"], [other])
        self.assert_counted(self.job)

    def test_it_is_carried_out_although_the_image_fails(self):
        self.cluster.ctl("vacate", "--no-wait", self.job)
        node = self.cluster.job(self.job)["nodes"][0]
        self.cluster.kill9_agent(node)
        self.let_go()
        self.cluster.start_agent(node)
        self.cluster.wait_event(self.job, "released")
        self.assert_counted(self.job)

    def test_resume_takes_it_back(self):
        verb = self.start("vacate", self.job)
        self.wait_ordered()
        self.cluster.ctl("resume", "--no-wait", self.job)
        self.let_go()
        out, err = verb.communicate(timeout=600)
        self.assertEqual((verb.returncode, out), (1, ""), err)
        self.assertRegex(err, f"job {self.job} continues: the vacate that waited is not carried out: withdrawn by ")
        self.assert_counted(self.job)
        self.assertNotIn("released", self.orders())

    def test_a_suspend_takes_its_place(self):
        verb = self.start("vacate", self.job)
        self.wait_ordered()
        self.cluster.ctl("suspend", "--no-wait", self.job)
        self.let_go()
        out, err = verb.communicate(timeout=600)
        self.assertEqual((verb.returncode, out), (1, ""), err)
        self.assertRegex(err, f"job {self.job} is suspended: the vacate that waited is not carried out: suspend, asked for by ")
        self.cluster.ctl("resume", self.job)
        self.assert_counted(self.job)

    def test_kill_does_not_wait(self):
        self.cluster.ctl("vacate", "--no-wait", self.job)
        self.cluster.ctl("kill", "--no-wait", self.job)
        self.let_go()
        self.cluster.wait_state(self.job, "cancelled")

    def test_what_is_wrong_with_an_order_is_said_at_once(self):
        with self.assertRaisesRegex(CtlError, "there is no node nowhere"):
            self.cluster.ctl("migrate", "--to", "nowhere", self.job)
        self.let_go()
        self.assert_counted(self.job)


class Planned(ClusterCase):
    """What an order would do is asked first."""

    def setUp(self):
        super().setUp()
        self.job = self.counter(8, 1, "suspend,checkpoint")
        self.wait_counting(self.job)

    def kinds(self):
        return [e["kind"] for e in self.cluster.events()]

    def test_a_plan_changes_nothing_and_the_order_rests_on_it(self):
        wait_for("the agent to say what the job holds", lambda: int(self.cluster.job(self.job)["memory"]) > 8 << 20)
        before = self.kinds()
        plan = self.cluster.ctl("vacate", "--dry-run", self.job)
        self.assertEqual(self.kinds(), before)
        self.assertEqual((plan["verb"], plan["method"], plan["tier"]), ("vacate", "checkpoint", "shared"))
        self.assertEqual(plan["nodes"], self.cluster.job(self.job)["nodes"])
        self.assertGreater(int(plan["bytes"]), 8 << 20)
        self.cluster.ctl("vacate", "--if-unchanged", plan["sequence"], self.job)
        self.assert_counted(self.job)

    def test_an_order_is_refused_if_its_plan_does_not_hold(self):
        plan = self.cluster.ctl("migrate", "--dry-run", self.job)
        self.assertEqual(len(plan["target"]), 1)
        self.cluster.ctl("checkpoint", self.job)
        with self.assertRaisesRegex(CtlError, "what was planned does not hold any more, and nothing was done"):
            self.cluster.ctl("migrate", "--if-unchanged", plan["sequence"], self.job)
        self.assertEqual(self.cluster.state(self.job), "running")
        self.assert_counted(self.job)

    def test_every_verb_has_a_plan_and_is_refused_like_the_order(self):
        for verb in ("suspend", "checkpoint", "vacate", "migrate", "kill"):
            self.assertEqual(self.cluster.ctl(verb, "--dry-run", self.job)["verb"], verb)
        node = self.cluster.job(self.job)["nodes"][0]
        self.assertEqual(self.cluster.ctl("cordon", "--dry-run", node)["stay"], [str(self.job)])
        self.assertEqual({n["state"] for n in self.cluster.ctl("nodes")["nodes"]}, {"up"})
        refusals = []
        for more in ((), ("--dry-run",)):
            with self.assertRaises(CtlError) as refused:
                self.cluster.ctl("migrate", *more, "--to", node, self.job)
            refusals.append(str(refused.exception).split("migrate: ")[-1])
        self.assertEqual(*refusals)
        self.assert_counted(self.job)


if __name__ == "__main__":
    unittest.main()
