"""Node agents without a controller: a test gives them their orders itself and sees every report."""

import json
import os
import signal
import subprocess
import threading

from cluster import BIN, PATIENCE, find_criu, kill9, know_disk, wait_for


class Agents:
    """One agent per node below `folder`, on one shared tier. `slurm_socket(node)`: where Slurm's plugin finds it.
    `programs`: the folder of siding-agent."""

    def __init__(self, folder, nodes, slurm_socket=None, programs=BIN, criu=None):
        self.dir, self.nodes, self.slurm_socket, self.programs = folder, nodes, slurm_socket, programs
        self.criu = criu or find_criu()
        self.shared = folder / "shared"
        self.socket = folder / "gateway.sock"
        self.agents, self.last, self.connected = {}, {}, set()
        # By node: more arguments of its agent, more variables, and what its command begins with.
        self.args, self.env, self.before = {}, {}, {}
        self.gateway = None
        self.op = 0

    def start(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.gateway = subprocess.Popen([BIN / "siding-test-gateway", self.socket], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        for node in self.nodes:
            self._spawn(node)
        wait_for("the agents", lambda: self.connected == set(self.nodes))
        return self

    def start_agent(self, node):
        """One that was killed; returns when it has said what it found."""
        self.connected.discard(node)
        self._spawn(node)
        wait_for(f"the agent of {node}", lambda: node in self.connected)

    def _spawn(self, node):
        know_disk(self.dir / node)
        argv = [*self.before.get(node, []), self.programs / "siding-agent", "--node", node, "--controller", self.socket, "--state-dir", self.dir / node,
                "--shared-dir", self.shared, "--log-level", "debug", "--criu", self.criu]
        if self.slurm_socket:
            argv += ["--slurm-socket", self.slurm_socket(node)]
        argv += self.args.get(node, [])
        with open(self.dir / f"{node}.log", "ab") as log:
            self.agents[node] = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                 env={**os.environ, **self.env.get(node, {})}, start_new_session=True)

    def kill9_agent(self, node):
        kill9(self.agents[node])

    def stop(self):
        for process in self.agents.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGCONT)  # a test that failed may have left it stopped
        for process in self.agents.values():
            process.wait(PATIENCE)
        if self.gateway:
            self.gateway.stdin.close()
            self.gateway.wait(PATIENCE)
            self.reader.join(PATIENCE)
            self.gateway.stdout.close()

    def _read(self):
        for line in self.gateway.stdout:
            node, text = line.split(" ", 1)
            message = json.loads(text)
            if "hello" in message:
                self.connected.add(node)
            tasks = [message["report"]] if "report" in message else []
            for kind in ("hello", "heartbeat"):
                tasks += message.get(kind, {}).get("tasks", [])
            for report in tasks:
                self.last[node, self.name(report["task"])] = report

    @staticmethod
    def name(task):
        return f"{task['job']}.{task['incarnation']}.{task.get('rank', 0)}"

    def report(self, node, task):
        return self.last.get((node, task), {})

    def wait_phase(self, node, task, phase):
        return wait_for(f"task {task} on {node} to be {phase}",
                        lambda: (r := self.report(node, task)).get("phase") == phase and r)

    def order(self, node, task, op=None, **what):
        self.op = op or self.op + 1
        job, incarnation, rank = task.split(".")
        command = {"op": self.op, "task": {"job": job, "incarnation": int(incarnation), "rank": int(rank)}, **what}
        self.gateway.stdin.write(f"{node} {json.dumps(command)}\n")
        self.gateway.stdin.flush()
        return self.op

    def checkpoint(self, tasks, checkpoint, tier="SHARED", keep_running=False):
        """Both phases of one checkpoint of all these tasks (node -> names); they leave, or continue."""
        where = [(node, task) for node, names in tasks.items() for task in names]
        for node, task in where:
            self.wait_phase(node, task, "RUNNING")
        ops = {task: self.order(node, task, dump={"checkpoint": checkpoint, "tier": tier, "keepRunning": keep_running})
               for node, task in where}
        for node, task in where:
            self.wait_phase(node, task, "PREPARED")
        for node, task in where:
            self.order(node, task, ops[task], commit={})
        self.op = max(ops.values())
        for node, task in where:
            self.wait_phase(node, task, "RUNNING" if keep_running else "CHECKPOINTED")
