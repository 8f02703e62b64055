#include "agent/gpu/drainable.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/gpu/collectives.h"
#include "common/files.h"

namespace siding {
namespace {

// What the driver maps of /dev/nvidia-uvm for a program of its own accord.
constexpr uint64_t kDriversOwnUvm = 2 << 20;
constexpr char kHowToSet[] =
    "submit with --gpu-collectives=drainable, or do not count on suspend and checkpoint";

// The first setting that this process lacks, "NCCL_P2P_DISABLE=1"; empty: it has all.
std::string MissingSetting(const GpuProgram& program) {
  for (const auto& [name, value] : kDrainableCollectives) {
    const auto found = program.environment.find(name);
    if (found == program.environment.end() || found->second != value) return absl::StrCat(name, "=", value);
  }
  return "";
}

bool HasSetting(const GpuProgram& program, const std::string& name, const std::string& part) {
  const auto found = program.environment.find(name);
  if (found == program.environment.end()) return false;
  const std::string value = absl::StrReplaceAll(absl::AsciiStrToLower(found->second), {{" ", ""}});
  return absl::StrContains(value, part);
}

// Managed memory is mapped from its device in its full size.
bool IsManagedMemory(const std::string& line) {
  if (!absl::EndsWith(line, "/dev/nvidia-uvm")) return false;
  char* rest = nullptr;
  const uint64_t begin = std::strtoull(line.c_str(), &rest, 16);
  const uint64_t end = std::strtoull(rest + 1, nullptr, 16);
  return end - begin > kDriversOwnUvm;
}

// Where the MPS server is through which the program reaches its GPU; empty: it has its own context.
std::string MpsPipes(const GpuProgram& program) {
  const auto set = program.environment.find("CUDA_MPS_PIPE_DIRECTORY");
  const std::string pipes = set == program.environment.end() ? "/tmp/nvidia-mps" : set->second;
  return access((pipes + "/control").c_str(), F_OK) == 0 ? pipes : "";
}

// NCCL itself, and libraries that have it linked in, always or in some of their builds.
constexpr const char* kHaveNccl[] = {"libnccl",         "libtorch_cuda", "libtensorflow", "xla_extension",
                                     "xla_cuda_plugin", "mpi_lib",       "libmxnet"};

std::string Process(const GpuProgram& program) { return absl::StrCat("process ", program.pid); }

}  // namespace

GpuProgram ReadGpuProgramMaps(const std::string& maps) {
  GpuProgram program;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const std::string path = line.substr(at);
    const std::string name = path.substr(path.rfind('/') + 1);
    program.nccl |= std::any_of(std::begin(kHaveNccl), std::end(kHaveNccl),
                                [&](const char* library) { return absl::StartsWith(name, library); });
    if (absl::StartsWith(name, "libnvshmem")) program.nvshmem = true;
    if (absl::StartsWith(name, "libuct_cuda")) program.ucx = true;
    if (absl::StartsWith(path, "/dev/shm/cuda.shm.")) program.legacy_ipc = true;
    if (IsManagedMemory(line)) program.managed = true;
  }
  return program;
}

std::map<std::string, std::string> ReadEnvironment(const std::string& environ) {
  std::map<std::string, std::string> variables;
  std::istringstream entries(environ);
  for (std::string entry; std::getline(entries, entry, '\0');) {
    const size_t at = entry.find('=');
    // Of a variable that is there twice, programs see the first.
    if (at != std::string::npos) variables.emplace(entry.substr(0, at), entry.substr(at + 1));
  }
  return variables;
}

std::string WhyNotDrainable(const std::vector<GpuProgram>& programs, int nodes, int gpus) {
  std::vector<const GpuProgram*> clients;
  for (const GpuProgram& program : programs) {
    if (program.managed) {
      return absl::StrCat(Process(program),
                          " uses managed memory (cudaMallocManaged), which the GPU driver cannot save");
    }
    // Also in a process that is no client: it has the other end.
    if (program.legacy_ipc) {
      return absl::StrCat(
          Process(program),
          " shares GPU memory with another process (CUDA IPC, as torch.multiprocessing does)");
    }
    if (program.is_client) clients.push_back(&program);
  }
  const size_t count = clients.size();
  for (const GpuProgram* client : clients) {
    if (client->nvshmem) return absl::StrCat(Process(*client), " has NVSHMEM, which shares GPU memory");
    if (nodes > 1 && client->nccl) {
      return absl::StrCat("its ", nodes,
                          " tasks may communicate with NCCL, and are not taken off their GPUs together");
    }
    // Several processes: whatever is mapped, for NCCL may be linked into the program itself.
    if (const std::string missing = MissingSetting(*client);
        (count > 1 || (gpus > 1 && client->nccl)) && !missing.empty()) {
      return absl::StrCat(count > 1 ? absl::StrCat(count, " processes on GPUs")
                                    : absl::StrCat("one process with NCCL on ", gpus, " GPUs"),
                          " may share GPU memory, which the GPU driver cannot restore: ", Process(*client),
                          " lacks ", missing, "; ", kHowToSet);
    }
    if (count == 1 && nodes == 1) continue;
    if (client->ucx && !HasSetting(*client, "UCX_TLS", "^cuda_ipc")) {
      return absl::StrCat(Process(*client),
                          " has UCX, which may share GPU memory with other processes; set UCX_TLS=^cuda_ipc");
    }
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      if (HasSetting(*client, name, "expandable_segments:true")) {
        return absl::StrCat(Process(*client), " has expandable segments (", name,
                            "), which several processes may share");
      }
    }
  }
  return "";
}

std::string WhyNotDrainable(const std::vector<pid_t>& tree, int nodes, int gpus,
                            const std::function<bool(pid_t)>& is_client) {
  std::vector<GpuProgram> programs;
  for (pid_t pid : tree) {
    const std::string folder = absl::StrCat("/proc/", pid);
    const auto maps = ReadFile(folder + "/maps");
    if (!maps.ok()) continue;
    GpuProgram program = ReadGpuProgramMaps(*maps);
    const bool has_driver = absl::StrContains(*maps, "libcuda.so");
    if (!has_driver && !program.legacy_ipc && !program.managed) continue;
    program.pid = pid;
    program.is_client = has_driver;
    program.environment = ReadEnvironment(ReadFile(folder + "/environ").value_or(""));
    if (const std::string pipes = MpsPipes(program); has_driver && !pipes.empty())
      return absl::StrCat(Process(program), " uses its GPU through MPS (", pipes, ")");
    programs.push_back(std::move(program));
  }
  if (programs.size() > 1) {
    for (GpuProgram& program : programs) program.is_client = program.is_client && is_client(program.pid);
  }
  return WhyNotDrainable(programs, nodes, gpus);
}

}  // namespace siding
