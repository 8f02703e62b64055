#!/usr/bin/python3
"""Which folder may include what: the table of docs/design/README.md, held against every #include of the tree."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What the engine's folders know of the world outside. Tests drive the whole engine by its fixture.
ENGINE_EDGES = ["controller/engine/engine.h", "controller/engine/engine_fixture.h", "controller/engine/fake_cluster.h", "controller/engine/journal_on_top.h", "controller/journal", "controller/platform", "controller/wire", "model", "planner", "common", "siding/v1"]
SLURM_EDGES = ["controller/platform/manager.h", "model", "common", "spank/messages.h", "spank/step_wire.h"]
SPANK_WIRE = ["spank/messages.h", "spank/options.h", "spank/step_wire.h"]
# Our folders that a folder may include, beside itself.
OURS = {
    "common": [],
    "model": ["common"],
    "planner": ["model", "common"],
    "store": ["common"],
    # siding-store puts the pages of an image together as the agent does; the store itself knows no pages.
    "store/tool": ["agent/memory", "store", "common"],
    "policy": ["model", "common"],
    "controller": ["model", "planner", "policy", "common", "siding/v1", "page/server/page.h", "page/server/service_sessions.h",
                   "page/server/service_source.h", "page/server/standby_source.h"],
    # It asks a source, of which one is the service, and another one sidingctl's connection to a controller.
    "page/server": ["common", "page/app/files.h", "siding/v1"],
    # One direction: observe -> decide -> act, and all of them know the state.
    "controller/engine/state": ENGINE_EDGES,
    "controller/engine/decide": ["controller/engine/state", *ENGINE_EDGES],
    "controller/engine/act": ["controller/engine/state", *ENGINE_EDGES],
    "controller/engine/observe": ["controller/engine/state", "controller/engine/decide", "controller/engine/act", *ENGINE_EDGES],
    "controller/platform": ["model", "common", "siding/v1"],
    "controller/platform/slurm": SLURM_EDGES + ["controller/platform"],
    # What speaks to Slurm knows nobody; the platform above joins what watches with what reconciles.
    "controller/platform/slurm/client": SLURM_EDGES,
    "controller/platform/slurm/watch": SLURM_EDGES + ["controller/platform/slurm/client"],
    "controller/platform/slurm/reconcile": SLURM_EDGES + ["controller/platform/slurm/client"],
    "controller/platform/slurm/submit": SLURM_EDGES + ["controller/platform/slurm/client", "controller/platform/slurm/watch"],
    # The same for Kubernetes; what stands for its server is for tests and simulations.
    "controller/platform/kubernetes": ["controller/platform", "model", "common"],
    "controller/platform/kubernetes/client": ["common"],
    "controller/platform/kubernetes/objects": ["controller/platform/kubernetes/client", "model", "common"],
    "controller/platform/kubernetes/watch": ["controller/platform/kubernetes/client", "controller/platform/kubernetes/objects",
                                             "controller/platform/manager.h", "model", "common"],
    "controller/platform/kubernetes/reconcile": ["controller/platform/kubernetes/client", "controller/platform/kubernetes/objects",
                                                 "controller/platform/kubernetes/watch", "controller/platform/manager.h", "model", "common"],
    "controller/platform/kubernetes/speak": ["controller/platform/kubernetes/client", "controller/platform/kubernetes/objects",
                                             "controller/platform/kubernetes/watch", "controller/platform/agents.h",
                                             "controller/platform/manager.h", "controller/wire", "model", "common", "siding/v1"],
    "controller/platform/kubernetes/fake": ["controller/platform/kubernetes/client", "common"],
    "controller/journal": ["model", "common"],
    "controller/notify": ["common", "siding/v1"],
    "agent": ["model", "store", "common", "siding/v1", *SPANK_WIRE],
    # From the bottom: what the kernel offers, what is done to processes with it, the programs, the node.
    "agent/os": ["common"],
    "agent/network": ["agent/os", "common"],
    "agent/criu": ["agent/os", "agent/criu", "common"],
    "agent/gpu": ["agent/os", "common"],
    "agent/task": ["common", "siding/v1"],
    "agent/memory": ["agent/os", "agent/criu/pagemap.pb.h", "model", "store", "common"],
    "agent/checkpoint": ["agent/os", "agent/criu", "agent/memory", "store", "common"],
    "agent/pods": ["agent/os", "agent/criu", "agent/checkpoint", "store", "common"],
    "agent/shim": ["agent/os", "agent/criu", "agent/gpu", "agent/checkpoint", "agent/network", "agent/task", "store", "common", "siding/v1", *SPANK_WIRE],
    "agent/node": ["agent/os", "agent/network", "agent/criu", "agent/gpu", "agent/memory", "agent/checkpoint", "agent/pods", "agent/task", "agent/shim", "store", "common", "siding/v1"],
    "agent/link": ["agent/node", "common", "siding/v1"],
    "agent/on_node": ["agent/os", "agent/criu", "store", "common"],
    "agent/slurm": ["agent/gpu", "agent/node", "store", "common", "siding/v1", *SPANK_WIRE],
    "launch": ["common"],
    "spank": [],
    "sim": ["model", "planner", "policy", "common"],
    "cli": ["common", "policy", "model", "siding/v1", "controller/platform/slurm", "controller/journal/check.h", "controller/journal/copy.h",
            "page/server/order_calls.h", "page/server/orders.h", "page/server/page.h", "page/server/source.h"],
}
# Tests may look at what it comes to, as well.
TESTS_ALSO = {
    "controller/journal": ["controller/engine/state/cluster_state.h"],
    "spank": ["common/patience_for_test.h"],
    "page/server": ["controller/api/calls_fixture.h", "controller/identity/certificate_cases.h"],
    "controller/platform/kubernetes/client": ["controller/platform/kubernetes/fake"],
    "controller/platform/kubernetes/watch": ["controller/platform/kubernetes/fake"],
    "controller/platform/kubernetes/reconcile": ["controller/platform/kubernetes/fake"],
}
# Files that may use more than their folder.
ALSO = {"page/server/service_source": ["controller/api"], "page/server/service_sessions": ["controller/api", "controller/identity"]}
# Folders that nobody but these includes.
ONLY_FOR = {"controller/ha": ["controller/main.cc"],
            "page/server": ["controller/page_setup.h", "cli/page_source.cc", "cli/page_source.h", "cli/verbs/page.cc", "tests/fuzz/page_request.cc"]}
# What must stay free of wire, database and logging.
PURE = ["model", "planner", "controller/platform/platform", "controller/platform/standalone", "common/units", "common/ids", "common/clock"]
IMPURE = re.compile(r"^(grpc|grpcpp|google/protobuf|siding/v1|sqlite3|spdlog|yaml-cpp|nlohmann)")
# The service knows no way by which calls come; these are the ways, and what is theirs.
WAYS = ("controller/api/grpc_api", "controller/api/time_limit")
OF_A_WAY = re.compile(r"^(grpc|grpcpp|microhttpd)|grpc\.pb\.h$|^controller/identity/identity\.h$|^controller/wire/grpc_status\.h$")
FOLDERS = ["common", "model", "policy", "planner", "store", "controller", "page", "agent", "cli", "siding/v1", "sim", "spank", "launch"]


def includes(text):
    return re.findall(r'^#include\s+[<"]([^>"]+)[>"]', text, re.MULTILINE)


def violations(path, text):
    """Every include of `path` (relative to the root) that the rules forbid."""
    found = []
    for included in includes(text):
        if any(path.startswith(pure) for pure in PURE) and IMPURE.match(included):
            found.append(f"{path} is pure and includes {included}")
        if path.startswith("controller/api/") and not path.startswith(WAYS) and OF_A_WAY.search(included):
            found.append(f"{path} includes {included}: the service knows no way by which calls come")
        for folder, users in ONLY_FOR.items():
            if included.startswith(folder + "/") and not path.startswith(folder + "/") and path not in users:
                found.append(f"{path} includes {included}, which is only for {', '.join(users)}")
        home = next((f for f in sorted(OURS, key=len, reverse=True) if path.startswith(f + "/")), None)
        target = next((f for f in FOLDERS if included.startswith(f + "/")), None)
        if home is None or target is None or included.startswith(home + "/"):
            continue
        may = OURS[home] + [a for file, also in ALSO.items() if path.startswith(file) for a in also] + (TESTS_ALSO.get(home, []) if path.endswith(("_test.cc", "_fixture.h")) else [])
        if not any(included == a or included.startswith(a + "/") for a in may):
            found.append(f"{path} includes {included}; {home} may use {', '.join(OURS[home]) or 'nothing of ours'}")
    return found


class Dependencies(unittest.TestCase):
    def test_the_tree_keeps_to_the_table(self):
        names = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.c"], cwd=ROOT, capture_output=True, text=True).stdout.split()
        self.assertGreater(len(names), 20)
        found = [v for name in names for v in violations(name, (ROOT / name).read_text())]
        self.assertEqual(found, [])

    def test_a_shim_that_knows_the_node_is_found(self):
        self.assertTrue(violations("agent/shim/x.cc", '#include "agent/node/task.h"\n'))

    def test_a_planner_that_logs_is_found(self):
        self.assertTrue(violations("planner/x.cc", '#include "spdlog/spdlog.h"\n'))

    def test_a_service_that_knows_how_calls_come_is_found(self):
        self.assertTrue(violations("controller/api/service.h", "#include <grpcpp/server_context.h>\n"))
        self.assertFalse(violations("controller/api/grpc_api.cc", "#include <grpcpp/server_context.h>\n"))

    def test_a_page_that_knows_of_whom_it_asks_is_found(self):
        self.assertTrue(violations("page/server/page.h", '#include "controller/api/service.h"\n'))
        self.assertFalse(violations("page/server/service_source.h", '#include "controller/api/service.h"\n'))

    def test_an_agent_that_knows_the_controller_is_found(self):
        self.assertTrue(violations("agent/x.cc", '#include "controller/engine/state/cluster_state.h"\n'))

    def test_an_engine_that_knows_who_stands_by_is_found(self):
        self.assertTrue(violations("controller/engine/x.cc", '#include "controller/ha/standby.h"\n'))
        self.assertFalse(violations("controller/main.cc", '#include "controller/ha/standby.h"\n'))

    def test_a_store_that_knows_pages_is_found(self):
        self.assertTrue(violations("store/x.cc", '#include "agent/memory/share_pages.h"\n'))
        self.assertFalse(violations("store/tool/x.cc", '#include "agent/memory/share_pages.h"\n'))

    def test_a_client_of_slurm_that_knows_what_is_desired_is_found(self):
        self.assertTrue(violations("controller/platform/slurm/client/x.cc", '#include "controller/platform/slurm/reconcile/steps.h"\n'))

    def test_a_program_with_a_fake_server_in_it_is_found(self):
        self.assertTrue(violations("controller/platform/kubernetes/watch/x.cc", '#include "controller/platform/kubernetes/fake/fake_transport.h"\n'))
        for of_tests in ("x_test.cc", "x_fixture.h"):
            self.assertFalse(violations(f"controller/platform/kubernetes/watch/{of_tests}", '#include "controller/platform/kubernetes/fake/fake_transport.h"\n'))

    def test_a_model_with_messages_is_found(self):
        self.assertTrue(violations("model/x.h", '#include "siding/v1/api.pb.h"\n'))

    def test_nothing_of_kubernetes_is_paced_by_a_clock_that_jumps(self):
        of_the_day = "AnswerReview(review, rules, SystemClock().Now())"  # what the webhook answers is about that
        sources = [*ROOT.glob("controller/manager/kubernetes*.cc"), *ROOT.glob("controller/platform/kubernetes/**/*.cc")]
        found = [f"{path.name}: {line.strip()}" for path in sources for line in path.read_text().splitlines()
                 if not path.name.endswith("_test.cc") and "SystemClock()" in line and of_the_day not in line]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
