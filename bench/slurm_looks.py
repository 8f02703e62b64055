"""looks: slurm_look_bench on a Slurm with many jobs and nodes, through libslurm and through Slurm's tools, and the controller itself."""

import json
import os
import pathlib
import signal
import subprocess
import time

from cluster import BIN
from slurm import Slurm


def add_arguments(parser):
    parser.add_argument("--queue", type=int, default=1000, help="jobs that wait beside one that runs on all nodes (%(default)s)")
    parser.add_argument("--seconds", type=int, default=30, help="that the controller is watched (%(default)s)")
    parser.add_argument("--queue-nodes", type=int, default=64, help="nodes of that Slurm (%(default)s)")


def processor(pid):
    """Seconds that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def controller_load(slurm, slurmctld, seconds):
    """sidingd, steering, with all of the queue before it and nothing to decide."""
    folder = slurm.dir / "controller"
    folder.mkdir()
    (folder / "sidingd.yaml").write_text(f"socket: {folder}/sock\nstate_dir: {folder}/state\n"
                                         f"slurm: {{mode: steering, ask_socket: {folder}/ask.sock}}\n")
    with open(folder / "log", "wb") as log:
        sidingd = subprocess.Popen([BIN / "sidingd", "--config", folder / "sidingd.yaml"], env=slurm.env, stdout=log, stderr=log)
    try:
        time.sleep(seconds / 2)  # the first look is the longest
        before = processor(sidingd.pid), processor(slurmctld)
        time.sleep(seconds)
        used = [100 * (after - b) / seconds for after, b in zip((processor(sidingd.pid), processor(slurmctld)), before)]
        print(f"sidingd, looking five times a second, {seconds} s: sidingd {used[0]:.2f}% of a core, slurmctld {used[1]:.2f}%", flush=True)
    finally:
        sidingd.send_signal(signal.SIGTERM)
        sidingd.wait()


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
        controller_load(slurm, controller, args.seconds)
        return True
    finally:
        slurm.stop()
        slurm.remove()
