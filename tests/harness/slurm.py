"""A private Slurm of several nodes on this machine: munged, slurmctld and one slurmd per node, on loopback, everything
below one folder. Several may run side by side. Needs root and the packages of deploy/setup."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

from accounting import Accounting
from cluster import PATIENCE, kill, last_lines, marked_processes, wait_for
from ports import free_ports
from vanishing import may_be_gone, removed, thaw_below

CGROUP2 = (pathlib.Path("/sys/fs/cgroup/unified"), pathlib.Path("/sys/fs/cgroup"))
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")

# A job that leaves with 99 after a checkpoint is requeued; its output file is kept. cred_expire is also the least delay
# before a requeued job may start again. config_overrides: nodes with more cores than the machine has.
CONF = """\
ClusterName=testbed
FirstJobId={first_job}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/s,cred_expire=5
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/pid/slurmctld
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdSpoolDir={dir}/spool/%n
SlurmdPidFile={dir}/pid/%n
SlurmdLogFile={dir}/log/%n.log
SlurmdDebug=verbose
DebugFlags=NO_CONF_HASH
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
{accounting}JobCompType=jobcomp/filetxt
JobCompLoc={dir}/log/jobcomp
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=300
KillWait=5
JobRequeue=1
RequeueExit=99
RequeueExitHold=98
JobFileAppend=1
PlugStackConfig={dir}/etc/plugstack.conf
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=200000
{extra}
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory={memory} State=UNKNOWN{gres}\n"
GRES = "NodeName={name} Name=gpu File={file}\n"
PARTITION = "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"


def missing():
    """The programs that this needs and that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class SlurmError(Exception):
    """A Slurm command failed; the text is what it wrote to stderr."""


def _command_line(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


class Slurm:
    def __init__(self, nodes=2, cpus=4, folder=None, proctrack="linuxproc", plugstack="", extra="", gpus=None, memory=1000, accounting=False):
        """`gpus`: a node's GPUs by their numbers, {"node1": [0, 1]}; Slurm takes any device whose name ends in one. `accounting`: with a database, so that sacct works."""
        # Short: the path of a unix socket has at most 107 characters.
        self.dir = pathlib.Path(folder or tempfile.mkdtemp(prefix="siding-slurm-"))
        self.nodes = [f"node{i + 1}" for i in range(nodes)]
        self.memory = memory  # of a node, MiB
        self.cpus, self.proctrack, self.plugstack, self.extra = cpus, proctrack, plugstack, extra
        self.gpus = gpus or {}
        self.accounting = Accounting(self, *free_ports(2)) if accounting else None
        self.children = []  # daemons that this very process started: to be waited for
        self.env = {**os.environ, "SLURM_CONF": str(self.dir / "etc" / "slurm.conf")}

    # ---- the daemons ----
    def start(self):
        """Returns when a job has run on every node."""
        for name in ("etc", "state", "spool", "log", "pid", "munge"):
            (self.dir / name).mkdir(parents=True, exist_ok=True)
        for path in (self.dir, self.dir / "munge"):
            path.chmod(0o755)
        self._write_configuration()
        self.spawn("munged", "--foreground", "--force", f"--key-file={self.dir}/munge/key", f"--socket={self.dir}/munge/s",
                    f"--pid-file={self.dir}/pid/munged.own", f"--log-file={self.dir}/log/munged.log",
                    f"--seed-file={self.dir}/munge/seed")
        wait_for("munged", (self.dir / "munge" / "s").exists)
        if self.accounting:
            self.accounting.start()
        self.start_controller()
        for node in self.nodes:
            (self.dir / "spool" / node).mkdir(exist_ok=True)
            self.start_node(node)
        wait_for("all nodes to run a job", self._runs_on_all_nodes)
        return self

    def start_node(self, node):
        self.spawn(node, "-D", "-N", node, program="slurmd", SIDING_SLURM_SOCKET=str(self.agent_socket(node)))

    def agent_socket(self, node):
        """Where this node's plugin looks for its agent."""
        return self.dir / "run" / f"{node}.sock"

    def stop_node(self, node):
        self._end(self.dir / "pid" / f"{node}.ours")

    def kill9_node(self, node):
        """slurmd only: what it has started continues."""
        if pid := self._alive(self.dir / "pid" / f"{node}.ours"):
            os.kill(pid, signal.SIGKILL)
        self._end(self.dir / "pid" / f"{node}.ours")

    def start_controller(self):
        self.spawn("slurmctld", "-D")

    def stop_controller(self):
        self._end(self.dir / "pid" / "slurmctld.ours")

    def wait_answer(self):
        """Until the restarted slurmctld answers."""
        def answers():
            try:
                return self.run("squeue", "-h", timeout=5) is not None
            except (SlurmError, subprocess.TimeoutExpired):
                return False
        wait_for("slurmctld to answer", answers)

    def stop(self):
        """Ends all jobs and daemons. The folder stays: it holds the logs."""
        if self._alive(self.dir / "pid" / "slurmctld.ours"):
            try:
                if jobs := self.run("squeue", "-h", "-o", "%A").split():
                    self.run("scancel", "--quiet", *jobs)
                wait_for("all jobs to be gone", lambda: not self.run("squeue", "-h"))
            except (AssertionError, SlurmError, subprocess.TimeoutExpired):
                pass  # they end with their nodes
        order = [*self.nodes, "slurmctld", "slurmdbd", "mariadbd", "munged"]
        known = [p.stem for p in (self.dir / "pid").glob("*.ours")]
        for name in sorted(known, key=lambda n: order.index(n) if n in order else -1):
            self._end(self.dir / "pid" / f"{name}.ours")
        kill(marked_processes(self.dir))
        wait_for("Slurm's processes to be gone", lambda: not marked_processes(self.dir))

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def _write_configuration(self):
        host = socket.gethostname().split(".")[0]
        port, *node_ports = free_ports(1 + len(self.nodes))
        # Jobs have files in /tmp that are named after their numbers, which several Slurms must not share.
        first_job = random.randrange(1, 60_000_000)
        text = CONF.format(host=host, port=port, dir=self.dir, proctrack=self.proctrack, extra=self.extra, first_job=first_job,
                           accounting=self.accounting.lines() if self.accounting else "AccountingStorageType=accounting_storage/none\n")
        for node, node_port in zip(self.nodes, node_ports):
            gres = f" Gres=gpu:{len(self.gpus[node])}" if node in self.gpus else ""
            text += NODE.format(name=node, host=host, port=node_port, cpus=self.cpus, memory=self.memory, gres=gres)
        etc = self.dir / "etc"
        if self.gpus:
            text += "GresTypes=gpu\n"
            (etc / "gres.conf").write_text("".join(GRES.format(name=node, file=self._device(number))
                                                   for node, numbers in self.gpus.items() for number in numbers))
        (etc / "slurm.conf").write_text(text + PARTITION)
        (etc / "cgroup.conf").write_text("CgroupAutomount=no\n")
        (etc / "plugstack.conf").write_text(self.plugstack + "\n")
        key = self.dir / "munge" / "key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))

    def _device(self, number):
        path = self.dir / "dev" / f"nvidia{number}"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null; a plain file is refused
        return path

    def spawn(self, name, *args, program=None, **env):
        with open(self.dir / "log" / f"{name}.out", "ab") as log:
            child = subprocess.Popen([shutil.which(program or name), *args], env={**self.env, **env}, stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, cwd=self.dir, start_new_session=True)
        self.children.append(child)
        status = pathlib.Path(f"/proc/{child.pid}/stat").read_text()
        (self.dir / "pid" / f"{name}.ours").write_text(json.dumps({"pid": child.pid, "start": status.rsplit(")", 1)[1].split()[19]}))

    @staticmethod
    def _alive(path):
        """The pid of the daemon that was started as this file says, if it is still there."""
        try:
            ref = json.loads(path.read_text())
            fields = pathlib.Path(f"/proc/{ref['pid']}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return None
        return ref["pid"] if fields[19] == ref["start"] and fields[0] != "Z" else None

    def _end(self, path):
        pid = self._alive(path)
        for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            if pid is None:
                break
            os.kill(pid, number)
            try:
                wait_for(f"{path.stem} to end", lambda: self._alive(path) is None, patience)
                pid = None
            except AssertionError:
                pass
        path.unlink(missing_ok=True)
        self.children = [child for child in self.children if child.poll() is None]

    def _runs_on_all_nodes(self):
        if not self._alive(self.dir / "pid" / "slurmctld.ours"):
            raise SlurmError("slurmctld ended: " + self.tail("slurmctld"))
        try:
            # A request that comes before a node has registered waits for the scheduler's next round.
            if self.run("sinfo", "-h", "-N", "-p", "batch", "-o", "%T").split() != ["idle"] * len(self.nodes):
                return False
            return self.run("srun", "-Q", "--immediate=5", "-N", len(self.nodes), "true") is not None
        except SlurmError:
            return False

    def tail(self, name, lines=15):
        return last_lines(self.dir / "log" / f"{name}.log", lines)

    # ---- what a user does ----
    def run(self, *args, uid=None, cwd=None, timeout=PATIENCE):
        """Runs a Slurm command; returns its output."""
        groups = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        done = subprocess.run([str(a) for a in args], env=self.env, capture_output=True, text=True, timeout=timeout,
                              cwd=cwd or self.dir, **groups)
        if done.returncode != 0:
            raise SlurmError(f"{args[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()

    def submit(self, *args, uid=None, cwd=None):
        return int(self.run("sbatch", "--parsable", *args, uid=uid, cwd=cwd))

    def job(self, job):
        """What `scontrol show job` says, as a dict. (Asked for an array's first number it tells of all elements.)"""
        lines = self.run("scontrol", "-o", "show", "job", job).splitlines()
        found = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
        return next(one for one in found if one["JobId"] == str(job))

    @contextlib.contextmanager
    def frozen_stepd(self, job, step):
        """Within it the daemon of this step does nothing: it reads no output. By a cgroup, as the kernel continues a stopped one when
        its task ends."""
        name = f"slurmstepd: [{job}.{step}]".encode()
        [pid] = [p.name for p in pathlib.Path("/proc").glob("[0-9]*") if _command_line(p).rstrip(b"\0") == name]
        root = next(path for path in CGROUP2 if (path / "cgroup.procs").exists())
        group = root / f"siding-test-{pid}"
        group.mkdir()
        try:
            (group / "cgroup.procs").write_text(pid)
            (group / "cgroup.freeze").write_text("1")
            wait_for("the step's daemon to be frozen", lambda: "frozen 1" in (group / "cgroup.events").read_text())
            yield
        finally:
            thaw_below(group)
            with may_be_gone():
                (root / "cgroup.procs").write_text(pid)
            wait_for(f"{group} to be empty", lambda: removed(group))

    def wait_state(self, job, *states):
        return wait_for(f"job {job} to be {' or '.join(states)}",
                        lambda: (now := self.job(job))["JobState"] in states and now)


def main(argv):
    if len(argv) < 3 or argv[1] not in ("start", "stop") or (argv[1] == "stop" and len(argv) > 3):
        print("usage: testbed start FOLDER [NODES [PLUGSTACK-LINE]] | testbed stop FOLDER")
        return 2
    if argv[1] == "stop":
        Slurm(folder=argv[2]).stop()
        return 0
    if missing() or os.geteuid() != 0:
        print("testbed: needs root, and " + ", ".join(missing() or PROGRAMS) + " (deploy/setup)")
        return 1
    begun = time.monotonic()
    slurm = Slurm(int(argv[3]) if len(argv) > 3 else 2, folder=os.path.abspath(argv[2]), plugstack=argv[4] if len(argv) > 4 else "")
    try:
        slurm.start()
    except Exception:
        slurm.stop()
        raise
    print(f"{len(slurm.nodes)} nodes after {time.monotonic() - begun:.1f} s: export SLURM_CONF={slurm.env['SLURM_CONF']}")
    return 0
