"""Tests that speak to a real Slurm as siding's controller does."""

from case import BIN, SlurmCase, wait_for
from client import ClientError, ClientTest  # noqa: F401

PENDING, STARTING, RUNNING, SUSPENDED, ENDING, ENDED = range(6)


class ClientCase(ClientTest, SlurmCase):
    nodes, backend = 1, "library"

    def client(self, *words, backend=None, uid=None):
        identity = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        return self.answer_of(BIN / "siding-test-slurm", backend or self.backend, *words, env=self.slurm.env, **identity)

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
