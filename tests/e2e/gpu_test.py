#!/usr/bin/python3
"""Jobs on GPUs from the request to the restored job: real processes and dumps, and a GPU driver without GPUs."""

import os
import pathlib
import shutil
import tempfile
import unittest

from case import FAR, ClusterCase, CtlError, jobs, wait_for
from cluster import BIN

LIBRARY = BIN.parent / "agent" / "gpu" / "libfake_cuda.so"
UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{i}" for i in (1, 2)]


class Gpus(ClusterCase):
    def setUp(self):
        self.gpu = pathlib.Path(tempfile.mkdtemp(prefix="siding-gpu-"))
        self.addCleanup(shutil.rmtree, self.gpu, ignore_errors=True)
        self.gpu.chmod(0o777)
        (self.gpu / "gpus").write_text("".join(f"{uuid} 80000 200 0\n" for uuid in UUIDS))
        os.environ["FAKE_CUDA"] = str(self.gpu)  # for the agents' helpers
        self.addCleanup(os.environ.pop, "FAKE_CUDA")
        super().setUp()

    def make_cluster(self):
        cluster = super().make_cluster()
        libraries = ["--cuda-library", LIBRARY, "--nvml-library", LIBRARY]
        cluster.agent_args = {node: ["--gpu", uuid, *libraries] for node, uuid in zip(self.nodes, UUIDS)}
        return cluster

    def counter_on_gpu(self, methods="checkpoint", mib=4):
        """A job that makes a step only while its state on the GPU is 'running', until its gate is opened."""
        gate = self.new_gate()
        states = self.gpu / f"states{len(self.cluster.submitted)}"
        states.mkdir()
        return self.submit_gated(gate, "--name", "counter", "--slots", 1, "--gpus", 1, f"--preemptible={methods}",
                                 "--env", f"FAKE_GPU_STATES={states}", "--workdir", self.cluster.dir,
                                 "--output", f"{self.outputs()}/%j.%r", "--", BIN / "siding-test-job", "-g", "-m", mib, "-e", gate, 0, 5)

    def express_on_gpu(self):
        """It stays until its gate is opened."""
        gate = self.new_gate()
        express = self.express(1, "--gpus", 1, command=jobs.command(self.cluster.dir, "stay", jobs.STAY, gate))
        self.gates[express] = gate
        return express

    def assert_every_step_once(self, job):
        self.end_job(job)
        written = (self.outputs() / f"{job}.0").read_text().split()
        self.assertTrue(written)
        self.assertEqual(written, [str(i + 1) for i in range(len(written))])

    def both_busy(self, methods="checkpoint", mib=4):
        victims = [self.counter_on_gpu(methods=methods, mib=mib) for _ in self.nodes]
        for victim in victims:
            self.wait_counting(victim)
        return victims

    def test_nodes_show_their_gpus_and_their_measured_speed(self):
        for node in self.cluster.node_list():
            self.assertEqual(node["capacity"]["gpus"], 1)
            self.assertEqual(node["gpu_names"], ["Fake GPU"])
            self.assertGreater(node["gpu"]["dump"]["bytes_per_second"], 0)

    def test_victim_makes_way_through_ram_and_goes_on_from_its_image(self):
        victims = self.both_busy()
        express = self.express_on_gpu()
        self.assert_in_time(express)
        preempted = next(v for v in victims if self.cluster.job(v)["preemptions"])
        kinds = [e["kind"] for e in self.cluster.events(preempted)]
        self.assertIn("order-suspend", kinds)
        self.cluster.wait_event(preempted, "released")
        self.end_job(express)
        for victim in victims:
            self.assert_every_step_once(victim)
        self.assert_all_quiet()

    def in_ram(self):
        """A victim whose image is being written while a request runs on its GPU, and the request. Its memory makes that
        take a while."""
        victims = self.both_busy(mib=512)
        express = self.express_on_gpu()
        self.assert_in_time(express)
        return next(v for v in victims if self.cluster.job(v)["preemptions"]), express, victims

    def assert_all_end_well(self, express, victims):
        self.end_job(express)
        for victim in victims:
            self.assert_every_step_once(victim)
        self.assert_all_quiet()

    def test_agent_that_dies_while_the_image_is_written_costs_nobody_anything(self):
        victim, express, victims = self.in_ram()
        node = self.cluster.job(express)["nodes"][0]
        self.cluster.wait_event(victim, "order-dump")
        self.cluster.kill9_agent(node)
        self.cluster.start_agent(node)
        self.assert_all_end_well(express, victims)

    def test_controller_that_dies_while_the_image_is_written_costs_nobody_anything(self):
        victim, express, victims = self.in_ram()
        self.cluster.wait_event(victim, "order-dump")
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assert_all_end_well(express, victims)

    def test_suspended_victim_comes_back_to_its_gpu(self):
        victims = self.both_busy(methods="suspend")
        express = self.express_on_gpu()
        self.assert_in_time(express)
        self.end_job(express)
        for victim in victims:
            self.assert_every_step_once(victim)

    def test_job_can_move_to_another_nodes_gpu(self):
        job = self.counter_on_gpu()
        self.wait_counting(job)
        first = self.cluster.job(job)["gpus"]
        self.cluster.ctl("migrate", job)
        self.cluster.wait_event(job, "restored")
        wait_for("the job to say which GPU it has", lambda: self.cluster.job(job).get("gpus"))
        self.assertNotEqual(self.cluster.job(job)["gpus"], first)
        self.assert_every_step_once(job)

    def test_job_that_the_driver_refuses_runs_on_and_the_reason_is_shown(self):
        job = self.counter_on_gpu()
        self.wait_counting(job)
        (self.gpu / "fault").write_text("checkpoint 801")
        with self.assertRaisesRegex(CtlError, "CUDA_ERROR_NOT_SUPPORTED"):
            self.cluster.ctl("vacate", job)
        view = self.cluster.wait_state(job, "running")
        self.assertIn("CUDA_ERROR_NOT_SUPPORTED", view["methods_note"])
        self.assertNotIn("checkpoint", view.get("methods", []))
        self.assert_every_step_once(job)

    def test_no_more_jobs_run_than_there_are_gpus(self):
        self.both_busy(methods="kill")
        third = self.counter_on_gpu(methods="kill")
        self.assertEqual(self.cluster.state(third), "pending")
        with self.assertRaises(CtlError):
            self.cluster.submit("--gpus", 2, "--start-by", f"+{FAR}s", "--", "/bin/true")


if __name__ == "__main__":
    unittest.main()
