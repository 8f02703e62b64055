// Which way there is to Slurm on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/platform/slurm/client.h"

namespace siding {

enum class SlurmBackend : uint8_t {
  kAny,      // the library if it can be loaded, or else the tools
  kLibrary,  // libslurm
  kTools,
};
// "any", "library" or "tools".
absl::StatusOr<SlurmBackend> ParseSlurmBackend(const std::string& name);

// Where this program's shared objects for libslurm are: ../lib/siding, seen from the program.
std::string DefaultSlurmLibraryFolder();

// kNotFound says what was tried. Slurm itself is not asked anything. The library reads slurm.conf at once (of
// SLURM_CONF, or Slurm's default) and ends the process if there is nonsense in it; a missing one is an error
// here. One cluster for each process: the library has global state, and is never unloaded.
absl::StatusOr<std::unique_ptr<SlurmClient>> OpenSlurm(
    SlurmBackend backend = SlurmBackend::kAny,
    const std::string& library_folder = DefaultSlurmLibraryFolder());

}  // namespace siding
