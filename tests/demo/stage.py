"""What the plays of the demo share: the batch jobs and their undisturbed results, the live table, the verdict."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import BIN, PATIENCE, ROOT, CtlError  # noqa: E402
from kubernetes import KubernetesError  # noqa: E402
from ports import free_row  # noqa: E402
from slurm import SlurmError  # noqa: E402

EXAMPLES = ROOT / "examples"
ENDED = ("done", "failed", "cancelled")
TTY = sys.stdout.isatty()
BOLD, RED, GREEN, OFF = ("\033[1m", "\033[31m", "\033[32m", "\033[0m") if TTY else ("",) * 4


def say(text):
    print(f"\n{BOLD}== {text}{OFF}", flush=True)


class Failed(Exception):
    """A command of the play that should have succeeded has not; it has said why."""


def show(*argv, code=0, **where):
    """Runs a command for people and lets them read what it says; returns it as well."""
    done = subprocess.run([str(a) for a in argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **where)
    print(done.stdout, end="", flush=True)
    if done.returncode != code:
        raise Failed(f"{argv[0]} ended with {done.returncode}")
    return done.stdout


def show_ctl(cluster, *args):
    return show(BIN / "sidingctl", "--socket", cluster.socket, *args, cwd=cluster.dir)


class Batch:
    """One batch job: its program, how it may be preempted, and where its result lands."""

    def __init__(self, name, nodes, preemptible, command, slots=1, app_signal=None, keeps_connections=False):
        self.name, self.nodes, self.slots, self.preemptible = name, nodes, slots, preemptible
        self.command, self.app_signal, self.keeps_connections = command, app_signal, keeps_connections
        self.id = None

    def argv(self, folder):
        return [a.replace("@", str(folder)) for a in self.command]

    def resuming(self, folder):
        """How a program that saves itself is started again."""
        return [*self.argv(folder), "--resume"]

    def make_place(self, folder):
        """Where it runs and its result lands."""
        place = folder / self.name
        for sub in ("halo", "work"):
            (place / sub).mkdir(parents=True, exist_ok=True)
        return place


def batch_jobs():
    heat, train, pipeline = BIN / "heat", EXAMPLES / "train" / "train.py", EXAMPLES / "pipeline" / "pipeline.sh"
    return [
        Batch("heat-gang", 2, "checkpoint",
              [str(heat), "--size", "512", "--steps", "10000", "--memory", "96", "--exchange", "@/halo", "--out", "@/out"]),
        Batch("heat-solo", 1, "suspend,checkpoint",
              [str(heat), "--size", "512", "--steps", "14000", "--memory", "256", "--out", "@/out"]),
        Batch("train-a", 1, "checkpoint,kill",
              ["/usr/bin/python3", str(train), "--epochs", "70", "--out", "@/out"]),
        Batch("train-b", 1, "app",
              ["/usr/bin/python3", str(train), "--epochs", "70", "--out", "@/out",
               "--self-checkpoint", "@/state.npz", "--after-save", "exit"], app_signal="USR1@15s"),
        # In siding's network any port is free; alone its ranks share that of this machine.
        Batch("heat-tcp", 2, "checkpoint",
              [str(heat), "--size", "512", "--steps", "10000", "--memory", "32", "--exchange", "tcp", "--port", str(free_row(2)),
               "--out", "@/out"], keeps_connections=True),
        Batch("pipeline-a", 1, "suspend",
              [str(pipeline), "--rounds", "12", "--work", "@/work", "--out", "@/out"]),
        Batch("pipeline-b", 1, "checkpoint",
              [str(pipeline), "--rounds", "12", "--work", "@/work", "--out", "@/out"]),
    ]


def reference(jobs, folder):
    """Runs every program to its end without siding, as many at a time as there are cores; their digests."""
    say("Each program alone, undisturbed: the digests to compare with")
    digests, running, waiting = {}, {}, list(jobs)
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                job = waiting.pop(0)
                running[job] = start_alone(job, folder)
            for job in [job for job, ranks in running.items() if all(r.poll() is not None for r in ranks)]:
                if any(r.returncode for r in running.pop(job)):
                    raise Failed(f"{job.name} failed without siding; see {folder / job.name}/log.0")
                digests[job.name] = digest_in(folder / job.name)
            time.sleep(0.05)
    finally:
        for rank in [rank for ranks in running.values() for rank in ranks]:
            if rank.poll() is None:
                os.killpg(rank.pid, signal.SIGKILL)
                rank.wait()
    for job in jobs:
        print(f"  {job.name:<12} {digests[job.name][:16]}")
    return digests


def start_alone(job, folder):
    """Its ranks, each in a process group of its own."""
    place, ranks = job.make_place(folder), []
    for rank in range(job.nodes):
        env = dict(os.environ, SIDING_RANK=str(rank), SIDING_NODES=str(job.nodes), SIDING_JOB_ID="0", OMP_NUM_THREADS="1",
                   SIDING_GANG_ADDRS=",".join(["127.0.0.1"] * job.nodes))
        with open(place / f"log.{rank}", "w") as log:
            ranks.append(subprocess.Popen(job.argv(place), cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=subprocess.STDOUT, start_new_session=True))
    return ranks


def digest_in(place):
    """Of the job that ran there; "none" if it did not get so far."""
    return (place / "out").read_text().split()[0] if (place / "out").exists() else "none"


class LiveTable:
    """What the jobs do, redrawn in place on a terminal, a line per change elsewhere."""

    def __init__(self, cluster):
        self.cluster, self.lines, self.last, self.began = cluster, 0, {}, time.monotonic()

    def draw(self):
        jobs = self.cluster.jobs().values()
        if TTY:
            rows = [f"{j['id']:>3} {j['spec']['name']:<12} {j['state']:<11} {','.join(j.get('nodes', [])):<12} "
                    f"{j.get('reason', '')[:60]}" for j in jobs]
            if self.lines:
                print(f"\033[{self.lines}A", end="")
            for row in rows:
                print("\033[2K" + row)
            self.lines = len(rows)
        else:
            for j in jobs:
                now = (j["state"], ",".join(j.get("nodes", [])))
                if self.last.get(j["id"]) != now:
                    self.last[j["id"]] = now
                    print(f"  {time.monotonic() - self.began:6.1f}s  job {j['id']:>2} {j['spec']['name']:<12} "
                          f"{now[0]:<11} {now[1]}", flush=True)
        return {int(j["id"]): j for j in jobs}

    def until(self, what, condition):
        """Draws until condition(jobs by number) is true, below what else has been printed."""
        self.lines = 0
        end = time.monotonic() + PATIENCE
        while not condition(self.draw()):
            if time.monotonic() > end:
                raise AssertionError(f"timed out after {PATIENCE:.0f} s waiting for {what}")
            time.sleep(0.2)

    def until_run(self, batch):
        """Until all run, and siding knows how much memory they have."""
        self.until("all batch jobs to run and be measured",
                   lambda now: all(j.id in now and now[j.id]["state"] == "running" and int(now[j.id]["memory"]) > 1 << 20
                                   for j in batch))

    def until_ended(self, what, jobs):
        self.until(f"{what} to end", lambda now: all(j in now and now[j]["state"] in ENDED for j in jobs))


def verdict(jobs, early, batch, expected, folder):
    """Prints how it went. `jobs`: as siding has them; `early`: for each request by name, how many seconds before its deadline it
    ran; None: never. True: nothing was missed, lost or wrong."""
    say("Result")
    for name, seconds in early.items():
        met = seconds is not None and seconds >= 0
        print(f"  {name:<12} deadline {'met, ' + format(seconds, '.1f') + ' s early' if met else RED + 'MISSED' + OFF}")
    print(f"\n  {'job':<12} {'state':<6} {'preempted':>9} {'lost':>15}  {'digest':<16} undisturbed")
    same = True
    for job in batch:
        now, digest = jobs[job.id], digest_in(folder / job.name)
        good = now["state"] == "done" and digest == expected[job.name]
        same &= good
        mark = GREEN + "same" + OFF if good else RED + "DIFFERENT" + OFF
        print(f"  {job.name:<12} {now['state']:<6} {now['preemptions']:>9} {now['lost_node_seconds']:>9.1f} node-s  "
              f"{digest[:16]:<16} {expected[job.name][:16]}  {mark}")
    return same and all(seconds is not None and seconds >= 0 for seconds in early.values())


def perform(play, keep, linger=False):
    """The play from its first line to an empty stage; the exit code. A play has a `dir`, perform() that is true if all went
    well, and stop(); one that can linger before that, linger()."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began, good = time.monotonic(), False
    try:
        good = play.perform()
        if linger:
            play.linger()
    except (AssertionError, CtlError, SlurmError, KubernetesError, Failed) as error:
        print(f"{RED}demo failed: {error}{OFF}\nsee {play.dir}", file=sys.stderr)
        keep = True
    finally:
        play.stop()
        if not keep:
            shutil.rmtree(play.dir)
    print(f"\n{time.monotonic() - began:.0f} s in all" + (f"; kept in {play.dir}" if keep else ""))
    return 0 if good else 1
