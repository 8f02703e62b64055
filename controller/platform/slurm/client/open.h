// Which way there is to Slurm on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

enum class Backend : uint8_t {
  kAny,      // the library if it can be loaded, or else the tools
  kLibrary,  // libslurm
  kTools,
};
// "any", "library" or "tools".
absl::StatusOr<Backend> ParseBackend(const std::string& name);

// Where this program's shared objects for libslurm are: ../lib/siding, seen from the program.
std::string DefaultLibraryFolder();

// kNotFound says what was tried. Slurm itself is not asked anything. The library reads slurm.conf at once (of
// SLURM_CONF, or Slurm's default) and ends the process if there is nonsense in it; a missing one is an error
// here. One cluster for each process: the library has global state, and is never unloaded.
absl::StatusOr<std::unique_ptr<Client>> OpenClient(
    Backend backend = Backend::kAny, const std::string& library_folder = DefaultLibraryFolder());

}  // namespace siding::slurm
