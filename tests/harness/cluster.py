"""A cluster of local nodes for the demo and the end-to-end tests: one sidingd, some siding-agents, real
processes, everything below one folder. Start it, use ctl(), stop it: nothing stays behind."""

import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from vanishing import may_be_gone, paths, removed, thaw_below

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where agents keep the cgroups of their tasks, below their nodes' names: those that freeze, and those that fence.
FREEZERS = ("/sys/fs/cgroup/freezer/siding", "/sys/fs/cgroup/siding", "/sys/fs/cgroup/unified/siding",
            "/sys/fs/cgroup/memory/siding", "/sys/fs/cgroup/pids/siding")
BIN = pathlib.Path(os.environ.get("SIDING_BIN", ROOT / "build" / "dev" / "bin")).resolve()


class CtlError(Exception):
    """sidingctl said no; the text is what it wrote to stderr."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


@functools.cache
def find_criu():
    """The path of a criu that works here, or None."""
    for path in (os.environ.get("SIDING_CRIU"), "/opt/siding/sbin/criu", shutil.which("criu")):
        if path and os.path.exists(path):
            if subprocess.run([path, "check"], capture_output=True).returncode == 0:
                return path
    return None


def know_disk(state_dir):
    """Before an agent's first start: the speed of its disks, as if it had measured them, which is to write and read 128 MiB:
    half of the processor time of an agent in a test, and a run starts several hundred."""
    rates = {f"{tier}.{way}": {"speeds": [300e6], "overheads": [0.02]} for tier in ("local", "shared") for way in ("dump", "restore")}
    file = pathlib.Path(state_dir) / "rates.json"
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(json.dumps(rates))


# Of everything that waits, in seconds. It is no statement about how long anything takes: a long limit costs time only when something
# is wrong, and a short one fails on a busy machine.
PATIENCE = 300.0


def wait_for(what, condition, timeout=PATIENCE):
    """Polls condition() until it is true and returns its value; AssertionError naming `what` after `timeout`."""
    end = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        answered = time.monotonic()
        if answered > end:
            raise AssertionError(f"timed out after {timeout:.0f} s waiting for: {what}")
        # The polling interval, not a guess at how long something takes. Most questions start a program: tests that wait, several at
        # once, shall not keep the machine busy with asking, or what they wait for takes the longer.
        time.sleep(min(0.5, max(0.02, 3 * (answered - asked))))


def kill9(process):
    """SIGKILL, and its end. It is the same one throughout, also where another thread starts the next one in its place meanwhile."""
    process.kill()
    process.wait(PATIENCE)


def kill(pids):
    """Ends all of them at once, as when their machine is gone: none sees another end, and tells of it. One that has ended meanwhile is
    no error."""
    pids = list(pids)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def last_lines(path, count):
    """The end of a log; "" if there is none."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-count:]) if path.exists() else ""


def marked_processes(folder):
    """Living processes outside our own process group with `folder` in their command line or environment."""
    found = []
    mark = str(folder).encode()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "cmdline").read_bytes() or mark in (entry / "environ").read_bytes():
                state, _, group = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[:3]
                if state != "Z" and int(group) != os.getpgid(0):
                    found.append(int(entry.name))
        except (OSError, IndexError):
            pass  # it ended while we looked
    return found


def start_time(pid):
    """In clock ticks after boot; with the number it is who the process is. None: there is none, or it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        return int(fields[19]) if fields[0] not in "ZX" else None
    except (OSError, IndexError):
        return None


def pid_namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def noted_processes(folder):
    """Living processes of which the agents whose state is below `folder` have noted that they are tasks' inits, and all that
    live below those. A restored task may have nothing of ours in its environment, and no shim any more."""
    namespaces = set()
    for note in paths(folder, "*/tasks/*/init.json"):
        try:
            said = json.loads(note.read_text())
        except (OSError, ValueError):
            continue  # it is being written, or removed
        pid = int(said.get("pid", 0))
        if pid and start_time(pid) == int(said.get("startTime", 0)):
            namespaces.add(pid_namespace(pid))
    namespaces -= {None, pid_namespace("self")}
    return [int(entry.name) for entry in pathlib.Path("/proc").iterdir()
            if entry.name.isdigit() and pid_namespace(entry.name) in namespaces]


def thaw(pids):
    """Those that are in a frozen cgroup, of which they would not even die."""
    for pid in pids:
        try:
            groups = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        except OSError:
            continue
        for line in groups:
            _, names, path = line.split(":", 2)
            if names == "freezer" and "/siding/" in path:
                thaw_below(pathlib.Path("/sys/fs/cgroup/freezer" + path))


def is_gpu_helper_of(agents, pid):
    """One lives as long as its agent, which may have our folder in its environment."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")  # its name is any bytes
    except OSError:
        return False
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return fields["Name"].startswith("siding-gpu-help") and int(fields["PPid"]) in agents


class Cluster:
    """`measure_disk`: agents are started as on a node, rather than with a speed that they are told."""

    def __init__(self, nodes=("n1", "n2"), slots=2, memory="2GiB", policy=None, folder=None, agent_args=(), config=None,
                 env=None, measure_disk=False):
        self.dir = pathlib.Path(folder or tempfile.mkdtemp(prefix="siding-"))
        self.dir.mkdir(parents=True, exist_ok=True)
        os.chmod(self.dir, 0o755)
        self.socket = self.dir / "siding.sock"
        self.nodes = list(nodes)
        self.slots, self.memory, self.policy = slots, memory, policy
        self.config, self.env = config, {**os.environ, **(env or {})}  # of the controller: YAML; of all
        self.measure_disk = measure_disk
        self.agent_args = agent_args  # for all agents; or a dictionary: for each by its node
        self.shared = self.dir / "shared"
        self.criu = find_criu()
        self.controller = None
        self.agents = {}
        self.submitted, self.had_names = [], set()
        self.variables = {}  # by node, or "sidingd": more of its process's environment, for the next start
        self.logs = self.dir / "logs"
        self.logs.mkdir(exist_ok=True)

    # ---- processes ----
    def _spawn(self, name, argv):
        with open(self.logs / f"{name}.log", "ab") as log:
            return subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env={**self.env, **self.variables.get(name.removeprefix("agent-"), {})}, start_new_session=True)

    def start_controller(self):
        self.controller = self._spawn("sidingd", self.controller_argv(self.socket))
        wait_for("the controller to answer", self._answers)

    def controller_argv(self, socket):
        argv = [BIN / "sidingd", "--socket", socket, "--state-dir", self.dir / "controller", "--heartbeat", "1s",
                "--log-level", "debug", *self.controller_args()]
        if self.config:
            path = self.dir / "sidingd.yaml"
            path.write_text(self.config)
            argv += ["--config", path]
        if self.policy:
            path = self.dir / "policy.yaml"
            path.write_text(self.policy)
            argv += ["--policy", path]
        return argv

    def controllers(self):
        return [self.controller]

    # What a cluster over the network says otherwise (tests/security).
    def controller_args(self):
        return ()

    def agent_connection(self, node):
        return ("--controller", self.socket)

    def ctl_program(self):
        return (BIN / "sidingctl",)

    def ctl_connection(self):
        return ("--socket", self.socket)

    def _answers(self):
        assert self.controller.poll() is None, "sidingd ended: " + self.tail("sidingd")
        try:
            self.ctl("nodes")
            return True
        except CtlError:
            return False

    def start_agent(self, node):
        if not self.measure_disk:
            know_disk(self.dir / node)
        argv = [BIN / "siding-agent", "--node", node, *self.agent_connection(node), "--state-dir", self.dir / node,
                "--shared-dir", self.shared, "--slots", self.slots, "--memory", self.memory, "--log-level", "debug"]
        if self.criu:
            argv += ["--criu", self.criu]
        more = self.agent_args[node] if isinstance(self.agent_args, dict) else self.agent_args
        self.agents[node] = self._spawn(f"agent-{node}", [*argv, *more])

    def start(self):
        self.start_controller()
        for node in self.nodes:
            self.start_agent(node)
        wait_for("all nodes to be up and measured", self._measured)
        self.names()
        return self

    def _measured(self):
        nodes = self.node_list()
        rates = [n.get(tier, {}).get(way, {}).get("bytes_per_second", 0)
                 for n in nodes for tier in ("local", "shared", *self._gpu_of(n)) for way in ("dump", "restore")]
        return len(nodes) == len(self.nodes) and all(rates) and all(n["state"] == "up" for n in nodes)

    @staticmethod
    def _gpu_of(node):
        return ("gpu",) if node["capacity"].get("gpus") and not node.get("gpu_problem") else ()

    def kill9_controller(self):
        kill9(self.controller)

    def kill9_agent(self, node):
        kill9(self.agents[node])

    def stop(self):
        """Ends jobs, agents and controller; whatever still runs below our folders is killed."""
        for process in [*self.agents.values(), *self.controllers()]:
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGCONT)  # a test that failed may have left it stopped
        for process in [*self.agents.values(), *self.controllers()]:
            if process:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    kill9(process)
        left = self.task_processes()
        kill(left)
        thaw(left)
        wait_for("our processes to be gone", lambda: not self.task_processes())
        for folder in self.temporary_folders():  # of jobs that were killed
            shutil.rmtree(folder, ignore_errors=True)
        for group in self.cgroups():
            wait_for(f"{group} to be empty", lambda g=group: removed(g))

    # ---- what its agents have outside of their folders (agent/os/names.h) ----
    def names(self):
        """By which that is told from what others have: of all controllers that it has had, one after the other."""
        for file in paths(self.dir, "*/cluster"):
            with may_be_gone():
                self.had_names.add(file.read_text().strip())
        return self.had_names

    def temporary_folders(self, job="*", rank="*"):
        return [folder for name in self.names() for folder in paths("/tmp", f"siding-{name}-*-job-{job}.{rank}")]

    def cgroups(self, task="*", node="*"):
        """Of tasks and of their shims."""
        return [group for root in FREEZERS for name in self.names() for group in paths(root, f"{node}/{task}.{name}*")]

    def task_folder(self, node, task):
        """What the agent keeps of a task such as 4.1.0; None: it does not know it."""
        tasks = self.dir / node / "tasks"
        return next((folder for name in (task, f"{task}.*") for folder in paths(tasks, name)), None)

    def task_processes(self):
        """Shims of this cluster, and its tasks."""
        mine = {p.pid for p in [*self.agents.values(), *self.controllers()] if p and p.poll() is None}
        found = {*marked_processes(self.dir), *noted_processes(self.dir)}
        return [pid for pid in sorted(found) if pid not in mine and not is_gpu_helper_of(mine, pid)]

    def tail(self, name, lines=15):
        return last_lines(self.logs / f"{name}.log", lines)

    # ---- what a user does ----
    def ctl(self, *args, uid=None):
        """Runs sidingctl with --json; returns what it printed, parsed (None if nothing)."""
        argv = [str(a) for a in (*self.ctl_program(), *self.ctl_connection(), "--json", *args)]
        done = subprocess.run(argv, capture_output=True, text=True, user=uid, group=uid, env=self.env, cwd=self.dir)
        if done.returncode != 0:
            raise CtlError(done.returncode, done.stderr.strip())
        # Streams (events) are one object a line.
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return found if args[0] == "events" else found[0] if found else None

    def submit(self, *args, uid=None):
        self.submitted.append(int(self.ctl("submit", *args, uid=uid)["id"]))
        return self.submitted[-1]

    def jobs(self):
        return {int(j["id"]): j for j in self.ctl("jobs", "--all").get("jobs", [])}

    def job(self, job):
        return self.jobs()[job]

    def state(self, job):
        return self.job(job)["state"]

    def node_list(self):
        return self.ctl("nodes").get("nodes", [])

    def wait_state(self, job, *states):
        view = None

        def there():
            nonlocal view
            view = self.job(job)
            return view["state"] in (*states, "done", "failed", "cancelled")
        try:
            wait_for(f"job {job} to be {' or '.join(states)}", there)
        except AssertionError as timed_out:
            raise AssertionError(f"{timed_out}; it is {view['state']}: {view.get('reason')}") from None
        assert view["state"] in states, f"job {job} {view['state']}: {view.get('reason')}"
        return view

    def events(self, job=None):
        return self.ctl("events", *(["--job", job] if job else []))

    def wait_event(self, job, kind):
        return wait_for(f"event {kind} of job {job}",
                        lambda: next((e for e in self.events(job) if e["kind"] == kind), None))
