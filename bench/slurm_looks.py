"""looks: slurm_look_bench on a Slurm with many jobs and nodes, through libslurm and through Slurm's tools."""

import json
import subprocess

from cluster import BIN
from slurm import Slurm


def add_arguments(parser):
    parser.add_argument("--queue", type=int, default=1000, help="jobs that wait beside one that runs on all nodes (%(default)s)")
    parser.add_argument("--queue-nodes", type=int, default=64, help="nodes of that Slurm (%(default)s)")


def measure(args):
    slurm = Slurm(args.queue_nodes, extra="MaxJobCount=20000")
    try:
        slurm.start()
        blocker = slurm.submit("-o", "/dev/null", f"-N{args.queue_nodes}", "--exclusive", "--wrap", "sleep 10000")
        slurm.wait_state(blocker, "RUNNING")
        for _ in range(args.queue):
            slurm.submit("-o", "/dev/null", "--wrap", "true")
        controller = json.loads((slurm.dir / "pid" / "slurmctld.ours").read_text())["pid"]
        for backend, looks in (("library", 500), ("tools", 50)):
            for changes in ((), ("--job", str(blocker))):
                subprocess.run([BIN / "slurm_look_bench", "--backend", backend, "--looks", str(looks), "--controller", str(controller),
                                *changes], env=slurm.env, check=True)
        return True
    finally:
        slurm.stop()
        slurm.remove()
