// Takes a process off its GPUs and puts it back, again and again, through the agent's helper; and with --bare
// by calling the driver from this process, which is the bound. Prints the times.
//   cycle [--bare] LIBRARY HELPER PID ROUNDS
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "agent/gpu/cuda_api.h"
#include "agent/gpu/drain.h"

namespace {

using namespace siding;  // NOLINT: a program of its own

const GpuTimes kTimes{std::chrono::seconds(30), std::chrono::seconds(120)};

double Seconds(const std::function<bool()>& act) {
  const auto begun = std::chrono::steady_clock::now();
  if (!act()) std::exit(1);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

struct Cycle {
  std::function<bool()> drain, refill;
};

Cycle Bare(const char* path, int pid) {
  void* const library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "cycle: %s\n", dlerror());
    std::exit(1);
  }
  const auto init = reinterpret_cast<cuda::Init>(dlsym(library, "cuInit"));
  const auto lock = reinterpret_cast<cuda::Lock>(dlsym(library, "cuCheckpointProcessLock"));
  const auto checkpoint = reinterpret_cast<cuda::Checkpoint>(dlsym(library, "cuCheckpointProcessCheckpoint"));
  const auto restore = reinterpret_cast<cuda::Restore>(dlsym(library, "cuCheckpointProcessRestore"));
  const auto unlock = reinterpret_cast<cuda::Unlock>(dlsym(library, "cuCheckpointProcessUnlock"));
  if (init(0) != cuda::kSuccess) std::exit(1);
  return {[=] {
            cuda::LockArgs args{};
            args.timeout_ms = 30000;
            return lock(pid, &args) == cuda::kSuccess && checkpoint(pid, nullptr) == cuda::kSuccess;
          },
          [=] { return restore(pid, nullptr) == cuda::kSuccess && unlock(pid, nullptr) == cuda::kSuccess; }};
}

Cycle Agent(GpuDriver& driver, pid_t pid) {
  const auto said = [](const absl::Status& status) {
    if (!status.ok()) std::fprintf(stderr, "cycle: %s\n", std::string(status.message()).c_str());
    return status.ok();
  };
  return {[=, &driver] { return said(DrainGpus(driver, {pid}, kTimes)); },
          [=, &driver] { return said(RefillGpus(driver, {pid}, {}, kTimes)); }};
}

int Descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

long ResidentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::atol(line.c_str() + 6);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool bare = argc > 1 && std::strcmp(argv[1], "--bare") == 0;
  char** const args = argv + (bare ? 2 : 1);
  if (argc - (bare ? 2 : 1) != 4) {
    std::fprintf(stderr, "usage: cycle [--bare] LIBRARY HELPER PID ROUNDS\n");
    return 2;
  }
  const int pid = std::atoi(args[2]), rounds = std::atoi(args[3]);
  const auto driver = NewGpuDriver(args[1], {.cuda = args[0]});
  const Cycle cycle = bare ? Bare(args[0], pid) : Agent(*driver, pid);
  double drain = 0, refill = 0, most_drain = 0, most_refill = 0;
  int descriptors = 0;
  long resident = 0;
  for (int round = 0; round < rounds; ++round) {
    const double d = Seconds(cycle.drain), r = Seconds(cycle.refill);
    drain += d / rounds, refill += r / rounds;
    most_drain = std::max(most_drain, d), most_refill = std::max(most_refill, r);
    if (round == 0) descriptors = Descriptors(), resident = ResidentKiB();
  }
  std::printf(
      "%-8s %3d rounds   drain %7.3f s (most %7.3f)   refill %7.3f s (most %7.3f)   %+d descriptors %+ld "
      "KiB\n",
      bare ? "driver" : "siding", rounds, drain, most_drain, refill, most_refill, Descriptors() - descriptors,
      ResidentKiB() - resident);
  return 0;
}
