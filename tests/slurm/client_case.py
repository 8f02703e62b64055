"""Tests that speak to a real Slurm as siding's controller does."""

import json
import subprocess

from case import BIN, SlurmCase, wait_for

PENDING, STARTING, RUNNING, SUSPENDED, ENDING, ENDED = range(6)


class ClientError(Exception):
    """The client's error: its code and message."""


class ClientCase(SlurmCase):
    nodes, backend = 1, "library"

    def client(self, *words, backend=None, uid=None):
        identity = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        done = subprocess.run([BIN / "siding-test-slurm", backend or self.backend, *map(str, words)], env=self.slurm.env,
                              capture_output=True, text=True, timeout=120, **identity)
        if done.returncode != 0:
            raise ClientError(done.stderr.strip())
        return json.loads(done.stdout) if done.stdout else None

    def refused(self, code, *words, **how):
        with self.assertRaises(ClientError) as caught:
            self.client(*words, **how)
        self.assertTrue(str(caught.exception).startswith(code), caught.exception)
        return str(caught.exception)

    def sleeper(self, *args):
        return self.slurm.submit("-o", "/dev/null", *args, "--wrap", "sleep 1000")

    def running(self, *args):
        job = self.sleeper(*args)
        self.slurm.wait_state(job, "RUNNING")
        return job

    def one(self, job):
        return next(j for j in self.client("jobs") if j["id"] == job)

    def until(self, job, **fields):
        return wait_for(f"job {job} to have {fields}", lambda: fields.items() <= (now := self.one(job)).items() and now)
