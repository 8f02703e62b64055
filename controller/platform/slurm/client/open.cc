#include "controller/platform/slurm/client/open.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/directory.h"
#include "common/status.h"
#include "controller/platform/slurm/client/library/entry.h"
#include "controller/platform/slurm/client/tool_client.h"

namespace siding::slurm {
namespace {

namespace fs = std::filesystem;

// The newest Slurm first.
std::vector<std::string> Candidates(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : ListFolder(folder).value_or(std::vector<std::string>())) {
    if (absl::StartsWith(name, "siding_slurm_") && absl::EndsWith(name, ".so"))
      paths.push_back(folder + "/" + name);
  }
  std::sort(paths.rbegin(), paths.rend());
  return paths;
}

absl::Status CheckConfiguration() {
  // Without it, the library would wait for a minute and then end the process.
  const char* named = std::getenv("SLURM_CONF");
  const std::string path = named != nullptr ? named : "/etc/slurm/slurm.conf";
  if (access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  const int error = errno;
  // Where slurmd keeps what it got from slurmctld, on sites that give it out so.
  if (named == nullptr && access("/run/slurm/conf/slurm.conf", R_OK) == 0) return absl::OkStatus();
  return ErrnoError(error, "Slurm's configuration " + path);
}

absl::StatusOr<std::unique_ptr<Client>> OpenLibrary(const std::string& folder) {
  SIDING_RETURN_IF_ERROR(CheckConfiguration());
  std::string tried;
  for (const std::string& path : Candidates(folder)) {
    // Global: libslurm's own plugins look for its symbols there.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      absl::StrAppend(&tried, "; ", dlerror());
      continue;
    }
    const auto open = reinterpret_cast<Entry>(dlsym(library, kEntryName));
    if (Client* client = open == nullptr ? nullptr : open(SIDING_VERSION); client != nullptr)
      return std::unique_ptr<Client>(client);
    absl::StrAppend(&tried, "; ", path, ": for another version of siding");
  }
  return absl::NotFoundError(
      absl::StrCat("no libslurm that siding can use, by ", folder, "/siding_slurm_*.so", tried));
}

bool IsInPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder :
       std::vector<std::string>(absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty()))) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Client>> OpenTools() {
  for (const char* tool : {"squeue", "sinfo", "scontrol"}) {
    if (!IsInPath(tool)) return absl::NotFoundError(absl::StrCat("Slurm's ", tool, " is not in PATH"));
  }
  return NewToolClient();
}

}  // namespace

absl::StatusOr<Backend> ParseBackend(const std::string& name) {
  if (name == "any") return Backend::kAny;
  if (name == "library") return Backend::kLibrary;
  if (name == "tools") return Backend::kTools;
  return absl::InvalidArgumentError(
      absl::StrCat("way to Slurm '", name, "': expected any, library or tools"));
}

std::string DefaultLibraryFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "/usr/lib/siding" : program.parent_path().parent_path() / "lib" / "siding";
}

absl::StatusOr<std::unique_ptr<Client>> OpenClient(Backend backend, const std::string& library_folder) {
  if (backend == Backend::kTools) return OpenTools();
  auto library = OpenLibrary(library_folder);
  if (library.ok() || backend == Backend::kLibrary) return library;
  auto tools = OpenTools();
  if (tools.ok()) return tools;
  return absl::NotFoundError(
      absl::StrCat("no way to Slurm: ", library.status().message(), "; ", tools.status().message()));
}

}  // namespace siding::slurm
