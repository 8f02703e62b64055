#!/usr/bin/env python3
"""siding on a machine with NVIDIA GPUs, as its users see it: jobs are suspended, checkpointed and restored while they
compute, and must end with what an undisturbed run prints. Prints a table; exits with 1 if anything is not as it should
be. Needs root, criu, and a folder that tests/gpu/build has made.

    tests/gpu/end_to_end.py BIN [SCENARIO...]
"""

import ctypes
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["SIDING_BIN"] = str(BIN)
os.environ["SIDING_CRIU"] = str(BIN / "criu")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import Cluster, CtlError, wait_for  # noqa: E402

POLICY = "min_runtime: 0s\ncooldown: 0s\nmargin: 500ms\n"
RANDOM = random.Random(int(os.environ.get("SEED", "1")))


def gpu_uuids():
    text = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True)
    return text.stdout.split()


class Bare:
    """The driver's functions, called directly: what siding is compared with."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.cuda.cuInit(0)

    def _call(self, name, pid, args=None):
        result = getattr(self.cuda, name)(pid, args)
        assert result == 0, f"{name}: error {result}"

    def drain(self, pid):
        start = time.monotonic()
        timeout = (ctypes.c_uint32 * 16)(60000)
        self._call("cuCheckpointProcessLock", pid, timeout)
        self._call("cuCheckpointProcessCheckpoint", pid)
        return time.monotonic() - start

    def refill(self, pid):
        start = time.monotonic()
        self._call("cuCheckpointProcessRestore", pid)
        self._call("cuCheckpointProcessUnlock", pid)
        return time.monotonic() - start


class Gpus(Cluster):
    """One agent for each node, with all GPUs or with those that are named."""

    def __init__(self, **args):
        super().__init__(**{"nodes": ("n1",), "slots": 16, "memory": "100GiB", "policy": POLICY, **args})

    def run(self, *command, gpus=1, methods="suspend,checkpoint", options=()):
        (self.dir / "out").mkdir(exist_ok=True)
        return self.submit("--name", pathlib.Path(command[0]).name, "--gpus", gpus, "--slots", 1, f"--preemptible={methods}",
                           "--gpu-collectives=drainable", *options, "--workdir", self.dir, "--output", f"{self.dir}/out/%j", "--", *command)

    def output(self, job):
        path = self.dir / "out" / str(job)
        return path.read_text() if path.exists() else ""

    def lines(self, job):
        return self.output(job).count("\n")

    def wait_more(self, job, more=3, timeout=120):
        target = self.lines(job) + more
        wait_for(f"job {job} to make {more} steps", lambda: self.lines(job) >= target, timeout)

    def when(self, job, kind, nth=-1):
        """Seconds at which the nth event of that kind happened."""
        found = [e for e in self.events(job) if e["kind"] == kind]
        return int(found[nth]["at_us"]) / 1e6

    def suspend(self, job):
        self.ctl("suspend", job)
        self.wait_state(job, "suspended")
        return self.when(job, "frozen") - self.when(job, "order-suspend")

    def resume(self, job):
        self.ctl("resume", job)
        self.wait_state(job, "running")
        return self.when(job, "thawed") - self.when(job, "order-resume")

    def vacate(self, job):
        """Off its node, and back as soon as the image is there: the queue is empty."""
        before = sum(e["kind"] == "restored" for e in self.events(job))
        self.ctl("vacate", job)
        wait_for("the job to be restored", lambda: sum(e["kind"] == "restored" for e in self.events(job)) > before)


def right(text):
    """Every line of hold's so far says that no word is wrong."""
    return text.count("\n") > 0 and all(line.endswith(" wrong 0") for line in text.splitlines())


def undisturbed(command):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(gpu_uuids())}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, cwd="/tmp")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def identical(cluster, command, disturb, gpus=1):
    expected = undisturbed(command)
    job = cluster.run(*command, gpus=gpus)
    cluster.wait_more(job)
    disturb(job)
    cluster.wait_state(job, "done")
    got = cluster.output(job)
    assert got == expected, f"other output than undisturbed:\n{got[-300:]}\nand not\n{expected[-300:]}"
    return f"{expected.count(chr(10)) - 1} steps, same output ({expected.split()[-1][:16]})"


@scenario
def programs():
    """Each kind of program is suspended once and checkpointed and restored once."""
    with_cluster = Gpus().start()
    try:
        print(subprocess.run([BIN / "sidingctl", "--socket", with_cluster.socket, "nodes"], capture_output=True, text=True).stdout)

        def disturb(job):
            with_cluster.suspend(job)
            with_cluster.resume(job)
            with_cluster.wait_more(job, 2)
            with_cluster.vacate(job)

        for name, command in {
            "plain": [BIN / "plain", "--steps", 400, "--pause-ms", 20],
            "streams, events, graph, pinned": [BIN / "streams", "--steps", 300, "--pause-ms", 20],
            "several processes": [BIN / "processes", "--steps", 300, "--pause-ms", 20, "--gpus", 1],
            "kernels of ten seconds": [BIN / "long_kernel", "--steps", 5, "--seconds", 10],
        }.items():
            try:
                report(f"programs: {name}", identical(with_cluster, command, disturb))
            except AssertionError as error:
                failed(f"programs: {name}", error)
                print(with_cluster.tail("agent-n1", 30), with_cluster.tail("sidingd", 20), sep="\n")
    finally:
        finish(with_cluster)


@scenario
def pytorch():
    """3 suspends and 2 checkpoints with restore, at random moments."""
    cluster = Gpus().start()
    try:
        def disturb(job):
            for what in RANDOM.sample(["suspend", "suspend", "suspend", "vacate", "vacate"], 5):
                cluster.wait_more(job, RANDOM.randrange(2, 60))
                if what == "vacate":
                    cluster.vacate(job)
                else:
                    cluster.suspend(job)
                    cluster.resume(job)

        command = ["python3", pathlib.Path(__file__).parent / "jobs" / "train.py", "--steps", 600, "--width", 2048]
        report("pytorch: 3 suspends, 2 checkpoints and restores", identical(cluster, [shutil.which("python3"), *command[1:]], disturb))
    finally:
        finish(cluster)


@scenario
def suspend():
    """What suspend and resume take, beside the bare driver."""
    bare = Bare()
    cluster = Gpus().start()
    try:
        for mib in (1024, 16384, 65536):
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu_uuids()[0]}
            log = cluster.dir / "bare"
            with open(log, "w") as out:
                process = subprocess.Popen([BIN / "hold", str(mib)], stdout=out, env=environment)
            wait_for("hold to run", lambda: log.read_text().count("\n") > 2)
            drains, refills = zip(*[(bare.drain(process.pid), bare.refill(process.pid)) for _ in range(3)])
            process.kill()
            process.wait()
            job = cluster.run(BIN / "hold", mib)
            cluster.wait_more(job)
            suspends, resumes = [], []
            for _ in range(3):
                suspends.append(cluster.suspend(job))
                resumes.append(cluster.resume(job))
                cluster.wait_more(job, 2)
            assert right(cluster.output(job)), cluster.output(job)[-200:]
            cluster.ctl("kill", job)
            cluster.wait_state(job, "cancelled")
            report(f"suspend: {mib} MiB", f"driver {median(drains):.3f} s, siding {median(suspends):.3f} s;   "
                                          f"back: driver {median(refills):.3f} s, siding {median(resumes):.3f} s")
    finally:
        finish(cluster)


@scenario
def huge_pages():
    """What they are worth at 16 GiB."""
    times = {}
    for name, args in {"with": [], "without": ["--no-huge-pages"]}.items():
        cluster = Gpus(agent_args=args).start()
        try:
            job = cluster.run(BIN / "hold", 16384)
            cluster.wait_more(job)
            times[name] = [(cluster.suspend(job), cluster.resume(job)) for _ in range(3)]
            cluster.wait_more(job, 2)
            assert right(cluster.output(job)), cluster.output(job)[-200:]
            cluster.ctl("kill", job)
            cluster.wait_state(job, "cancelled")
        finally:
            finish(cluster)
    setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip()
    report("huge pages: 16384 MiB", "; ".join(
        f"{name}: suspend {median([s for s, _ in t]):.3f} s, resume {median([r for _, r in t]):.3f} s" for name, t in times.items()))
    check(f"huge pages: the setting is as before: {setting}", "[madvise]" in setting or "[always]" in setting)


def bare_dump(folder):
    """Seconds that criu alone takes for a drained process of 16 GiB, and the disk afterwards for a sync."""
    bare, log = Bare(), folder / "bare"
    with open(log, "w") as out:
        process = subprocess.Popen([BIN / "hold", "16384"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    wait_for("hold to run", lambda: log.read_text().count("\n") > 2)
    bare.drain(process.pid)
    images = folder / "images"
    images.mkdir()
    start = time.monotonic()
    subprocess.run([BIN / "criu", "dump", "-t", str(process.pid), "-D", images, "--tcp-established", "--file-locks"], check=True,
                   capture_output=True)
    dumped = time.monotonic()
    os.sync()
    process.wait()
    shutil.rmtree(images)
    return dumped - start, time.monotonic() - dumped


@scenario
def early():
    """A 16 GiB victim is checkpointed to disk: the on-demand job does not wait for the image."""
    cluster = Gpus().start()
    try:
        dump_alone, sync_alone = bare_dump(cluster.dir)
        started = time.monotonic()
        undisturbed([BIN / "plain", "--steps", 1, "--mib", 1])
        alone = time.monotonic() - started
        victim = cluster.run(BIN / "hold", 16384, methods="checkpoint")
        cluster.wait_more(victim)
        submitted = time.time()
        express = cluster.run(BIN / "plain", "--steps", 4000, "--mib", 1, "--pause-ms", 10, methods="kill", options=["--start-by", "+60s"])
        wait_for("the first kernel", lambda: cluster.lines(express) >= 1)
        first = time.time() - submitted
        drain = cluster.when(victim, "frozen") - cluster.when(victim, "order-suspend")
        cluster.wait_state(victim, "parked")
        dump = cluster.when(victim, "released") - cluster.when(victim, "order-dump")
        assert cluster.state(express) == "running"
        cluster.ctl("kill", express)
        cluster.wait_state(victim, "running")
        restore = cluster.when(victim, "restored") - cluster.when(victim, "place")
        cluster.wait_more(victim)
        assert right(cluster.output(victim)), cluster.output(victim)[-200:]
        report("early: 16 GiB to disk", f"first kernel after {first:.2f} s: drain {drain:.2f} s, and the job alone needs {alone:.2f} s; "
                                        f"the image, durable, took {dump:.1f} s more (criu alone {dump_alone:.1f} s and a sync {sync_alone:.1f} s), "
                                        f"restored in {restore:.1f} s")
        check("early: first kernel within drain + 1 s", first <= drain + 1)
        cluster.ctl("kill", victim)
        cluster.wait_state(victim, "cancelled")
    finally:
        finish(cluster)


@scenario
def refused():
    """What cannot be drained is known beforehand, and unharmed."""
    cluster = Gpus().start()
    try:
        job = cluster.run(BIN / "managed", "--steps", 2000, "--pause-ms", 20)
        wait_for("the reason to be known", lambda: "managed memory" in cluster.job(job).get("methods_note", ""))
        methods = cluster.job(job).get("methods", [])
        try:
            cluster.run(BIN / "plain", "--steps", 1, methods="kill", options=["--start-by", "+30s"])
            assert False, "the request was admitted"
        except CtlError as error:
            text = str(error)
        try:
            cluster.ctl("suspend", job)
            assert False, "the suspend succeeded"
        except CtlError as error:
            assert "managed memory" in str(error), error
        cluster.wait_more(job)
        report("refused: managed memory", f"methods left {methods}, a request is refused ({text.splitlines()[0][:80]}), the job runs on")
        cluster.ctl("kill", job)
        cluster.wait_state(job, "cancelled")
    finally:
        finish(cluster)


@scenario
def cycles():
    """50 suspends and resumes of 1 GiB: nothing grows."""
    cluster = Gpus().start()
    try:
        job = cluster.run(BIN / "hold", 1024)
        cluster.wait_more(job)
        ours = [cluster.agents["n1"].pid, *children(cluster.agents["n1"].pid, "siding-gpu-help")]
        before = None
        for round_ in range(50):
            cluster.suspend(job)
            cluster.resume(job)
            cluster.wait_more(job, 1)
            if round_ == 4:
                before = [sizes(pid) for pid in ours]
        after = [sizes(pid) for pid in ours]
        assert right(cluster.output(job)), cluster.output(job)[-200:]
        report("cycles: 50 times 1 GiB", "; ".join(
            f"{name}: {b[0]} -> {a[0]} descriptors, {b[1]} -> {a[1]} KiB" for name, b, a in zip(("agent", "helper"), before, after)))
        check("cycles: no descriptor is lost", all(a[0] <= b[0] for a, b in zip(after, before)))
        cluster.ctl("kill", job)
        cluster.wait_state(job, "cancelled")
    finally:
        finish(cluster)


@scenario
def two_gpus():
    """On another GPU of the node, and from one node to another."""
    uuids = gpu_uuids()
    if len(uuids) < 2:
        return report("two_gpus", "not run: this machine has one GPU")
    cluster = Gpus().start()
    plain = [BIN / "plain", "--steps", 400, "--pause-ms", 20]
    try:
        def moved(job):
            first = cluster.job(job)["gpus"]
            cluster.suspend(job)
            neighbour = cluster.run(BIN / "hold", 1024, methods="kill")
            cluster.wait_more(neighbour)
            cluster.resume(job)
            second = cluster.job(job)["gpus"]
            assert first != second, f"still on {first}"
            cluster.wait_more(job)
            cluster.ctl("kill", neighbour)
            cluster.wait_state(neighbour, "cancelled")
            cluster.suspend(job)
            neighbour = cluster.run(BIN / "hold", 1024, methods="kill")
            cluster.wait_more(neighbour)
            cluster.ctl("vacate", job)
            cluster.wait_event(job, "restored")
            cluster.ctl("kill", neighbour)

        report("two_gpus: resumed and restored on another", identical(cluster, plain, moved))

        def both(job):
            cluster.suspend(job)
            cluster.resume(job)
            cluster.wait_more(job)
            cluster.vacate(job)

        report("two_gpus: one process on both", identical(cluster, [BIN / "several_gpus", "--steps", 300, "--pause-ms", 20], both, gpus=2))
    finally:
        finish(cluster)
    cluster = Gpus(nodes=("n1", "n2"), agent_args={f"n{i + 1}": ["--gpu", uuids[i]] for i in range(2)}).start()
    try:
        def to_the_other(job):
            node = cluster.job(job)["nodes"][0]
            cluster.ctl("migrate", job)
            cluster.wait_event(job, "restored")
            assert cluster.job(job)["nodes"][0] != node

        report("two_gpus: migrated to another node", identical(cluster, plain, to_the_other))
    finally:
        finish(cluster)


def median(values):
    return sorted(values)[len(values) // 2]


def children(pid, name):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(re.search(r"PPid:\s+(\d+)", (entry / "status").read_text())[1]) == pid and \
                        (entry / "comm").read_text().strip() == name:
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def sizes(pid):
    resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())), resident


FAILURES = []


def report(name, text):
    print(f"{name:<48} {text}", flush=True)


def check(name, condition):
    if not condition:
        FAILURES.append(name)
        report(name, "NO")


def failed(name, error):
    FAILURES.append(name)
    report(name, f"FAILED: {error}")


def finish(cluster):
    if sys.exc_info()[0]:
        for log in sorted(cluster.logs.iterdir()):
            print(f"---- {log.name}\n{cluster.tail(log.stem, 30)}", flush=True)
    cluster.stop()
    shutil.rmtree(cluster.dir, ignore_errors=True)


def main():
    for name in sys.argv[2:] or SCENARIOS:
        try:
            SCENARIOS[name]()
        except (AssertionError, CtlError, subprocess.SubprocessError) as error:
            failed(name, error)
    print("all as it should be" if not FAILURES else f"FAILED: {', '.join(FAILURES)}")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
