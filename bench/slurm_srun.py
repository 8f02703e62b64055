"""srun: how long `srun true` takes without the plugin, with it, and with a job that asks for it."""

import statistics
import subprocess
import time

from agents import Agents
from cluster import BIN
from slurm import Slurm

PLUGIN = BIN.parent / "lib" / "siding_spank.so"


def add_arguments(parser):
    parser.add_argument("--sruns", type=int, default=40, help="of each kind, in turn (%(default)s)")


def measure(args):
    slurm = Slurm(1)
    agents = Agents(slurm.dir / "agents", slurm.nodes, slurm.agent_socket)
    plugstack = slurm.dir / "etc" / "plugstack.conf"
    line = f"optional {PLUGIN} programs={BIN}\n"
    # srun and slurmstepd read plugstack.conf each time they start.
    kinds = (("without the plugin", "", ()), ("with it, without its flags", line, ()),
             ("with --siding-preemptible", line, ("--siding-preemptible",)))
    took = {name: [] for name, _, _ in kinds}
    try:
        agents.start()
        slurm.start()
        for _ in range(args.sruns):
            for name, text, flags in kinds:
                plugstack.write_text(text)
                begun = time.monotonic()
                subprocess.run(["srun", "-Q", *flags, "true"], env=slurm.env, check=True)
                took[name].append(time.monotonic() - begun)
    finally:
        slurm.stop()
        agents.stop()
        slurm.remove()
    print(f"{'srun true, of ' + str(args.sruns):28} {'median':>10} {'90 %':>10}")
    for name, seconds in took.items():
        print(f"{name:28} {statistics.median(seconds) * 1e3:7.1f} ms {statistics.quantiles(seconds, n=10)[8] * 1e3:7.1f} ms")
    return True
