// siding-mpirun: starts an Open MPI program in a job whose connections are kept. See arguments.cc.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/status.h"
#include "launch/arguments.h"
#include "launch/follow.h"
#include "launch/gang.h"
#include "launch/lead.h"
#include "launch/relay.h"

namespace siding::launch {
namespace {

constexpr int kRelayFailed = 255;  // as of ssh

int Complain(const absl::Status& status, int code) {
  std::fprintf(stderr, "siding-mpirun: %s\n", std::string(status.message()).c_str());
  return code;
}

int CodeOf(const absl::Status& status) {
  if (absl::IsNotFound(status)) return 127;  // as of a shell
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ? 2 : 1;
}

absl::StatusOr<int> Do(const Arguments& arguments) {
  SIDING_ASSIGN_OR_RETURN(const Gang gang, FindGang([](const char* name) { return std::getenv(name); }));
  if (arguments.mode == Mode::kRelay) return Relay(gang, arguments.rest);
  return gang.rank == 0 ? Lead(gang, arguments) : Follow(gang, arguments.patience);
}

int Main(const std::vector<std::string>& words) {
  const auto arguments = ParseArguments(words);
  if (!arguments.ok()) return Complain(arguments.status(), CodeOf(arguments.status()));
  if (arguments->mode == Mode::kHelp) return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
  if (arguments->mode == Mode::kVersion) return std::puts("siding-mpirun " SIDING_VERSION) < 0 ? 1 : 0;
  const auto code = Do(*arguments);
  if (code.ok()) return *code;
  return Complain(code.status(), arguments->mode == Mode::kRelay ? kRelayFailed : CodeOf(code.status()));
}

}  // namespace
}  // namespace siding::launch

int main(int argc, char** argv) { return siding::launch::Main({argv + 1, argv + argc}); }
