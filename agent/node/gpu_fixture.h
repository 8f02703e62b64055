// Tasks with GPUs, on real processes and with a driver that has none: a job whose state on the GPU is not
// what it should be makes no steps.
#pragma once

#include <string>

#include "agent/gpu/fake_folder.h"
#include "agent/node/host_fixture.h"

namespace siding {

inline constexpr char kFirst[] = "GPU-00000000-0000-0000-0000-000000000001";
inline constexpr char kSecond[] = "GPU-00000000-0000-0000-0000-000000000002";
inline constexpr char kRunning[] = "0", kCheckpointed[] = "2";  // states of a process, in the fake driver

class GpuTest : public HostTest {
 protected:
  void SetUp() override { NeedCriu(); }

  TaskHostOptions Options(const std::string& node) const override {
    TaskHostOptions options = HostTest::Options(node);
    options.gpu_libraries = GpuLibraries{FAKE_CUDA_LIBRARY, FAKE_CUDA_LIBRARY};
    options.gpu_helper_path = GPU_HELPER;
    options.gpu_probe_path = GPU_PROBE;
    options.capacity.set_gpus(-1);
    return options;
  }
  void StartHostWith(int gpus, int mib_in_use = 100) {
    SetInUse(gpus, mib_in_use);
    StartHost();
  }
  void SetInUse(int gpus, int mib) {
    std::string text;
    for (const char* uuid : {kFirst, kSecond}) {
      if (gpus-- > 0) text += std::string(uuid) + " 1000 " + std::to_string(mib) + " 0\n";
    }
    gpu_.Write("gpus", text);
  }
  v1::JobSpec GpuJob() const {
    v1::JobSpec spec = Counter({"-g"});
    spec.mutable_per_node()->set_gpus(1);
    (*spec.mutable_env())["FAKE_GPU_STATES"] = gpu_.path();
    return spec;
  }
  void DumpAndCommit(int64_t op, const std::string& checkpoint) {
    Dump(op, checkpoint);
    AwaitPhase(v1::PREPARED);
    Commit(op);
    AwaitPhase(v1::CHECKPOINTED);
  }
  v1::TaskReport AwaitFailureIn(v1::TaskPhase phase, int64_t op) {
    return sink_.Await(Task(), [&](const auto& r) { return r.failed_op() == op && r.phase() == phase; });
  }
  // Of the job's command.
  std::string GpuState() const { return gpu_.Read(std::to_string(first_process())); }
  // A task of another job that takes a GPU and keeps it.
  void LaunchNeighbour() {
    v1::ToAgent command = Command(1);
    command.mutable_task()->set_job(job_ + 1);
    v1::JobSpec spec = Counter();
    spec.set_output(folder_ + "/neighbour");
    spec.mutable_per_node()->set_gpus(1);
    *command.mutable_launch()->mutable_spec() = spec;
    Order(command);
    neighbour_ = command.task();
    sink_.Await(neighbour_, [](const auto& r) { return r.phase() == v1::RUNNING; });
  }

  FakeCudaFolder gpu_;
  v1::TaskRef neighbour_;
};

}  // namespace siding
