#include "launch/arguments.h"

#include <cstddef>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::launch {
namespace {

// "--name VALUE" or "--name=VALUE" at `at`, which moves on to its last word. Nothing: another option.
absl::StatusOr<std::optional<std::string>> Value(const std::vector<std::string>& words, size_t& at,
                                                 const std::string& name) {
  if (absl::StartsWith(words[at], name + "=")) return words[at].substr(name.size() + 1);
  if (words[at] != name) return std::nullopt;
  if (at + 1 == words.size()) return absl::InvalidArgumentError(name + ": expected a value");
  return words[++at];
}

}  // namespace

const char kHelp[] =
    R"(usage: siding-mpirun [--mpirun PATH] [--wait DURATION] MPIRUN-OPTION... PROGRAM [ARGUMENT...]

Starts an Open MPI program in a job whose connections are kept, with all that belongs to it inside of the job:

  sidingctl submit --nodes 2 --slots 2 --connections keep -- siding-mpirun -np 4 ./solver

Each task of the job runs it. Rank 0 runs mpirun, on the job's nodes and slots, over the job's network; the
others run what mpirun starts on their nodes. It ends with mpirun's exit code.

Its own options come first:
  --mpirun PATH    which mpirun; else $SIDING_MPIRUN, or the one in $PATH
  --wait DURATION  how long the tasks wait for each other at the start (10m)
  --help, --version

All others are mpirun's (mpirun --help). What it says by the variables OMPI_MCA_... is set only where the job has
not set it, and mpirun's options (--mca) go before. Tasks but the first listen at TCP port 7783 of
$SIDING_GANG_ADDR, which only the job can reach.
)";

absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  size_t at = 0;
  for (; at < words.size(); ++at) {
    if (words[at] == "--help" || words[at] == "-h") {
      arguments.mode = Mode::kHelp;
      return arguments;
    }
    if (words[at] == "--version") {
      arguments.mode = Mode::kVersion;
      return arguments;
    }
    if (words[at] == "--relay") {
      arguments.mode = Mode::kRelay;
      ++at;
      break;
    }
    SIDING_ASSIGN_OR_RETURN(auto mpirun, Value(words, at, "--mpirun"));
    if (mpirun && mpirun->empty()) return absl::InvalidArgumentError("--mpirun: expected a path");
    if (mpirun) {
      arguments.mpirun = *mpirun;
      continue;
    }
    SIDING_ASSIGN_OR_RETURN(const auto wait, Value(words, at, "--wait"));
    if (!wait) break;
    const auto patience = ParseDuration(*wait);
    if (!patience.ok()) return Annotate(patience.status(), "--wait");
    arguments.patience = *patience;
  }
  arguments.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  if (arguments.mode == Mode::kRelay && arguments.rest.size() < 2)
    return absl::InvalidArgumentError("--relay: expected an address and a command");
  if (arguments.rest.empty())
    return absl::InvalidArgumentError("expected what mpirun is to run (siding-mpirun --help)");
  return arguments;
}

}  // namespace siding::launch
