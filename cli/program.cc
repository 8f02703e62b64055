#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/verbs/verbs.h"

namespace siding::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNoController = 3;

}  // namespace

int Run(int argc, const char* const* argv) {
  CLI::App app("sidingctl asks siding's controller: submit jobs, see what happens and why, and act by hand");
  Session session;
  session.socket = "/run/siding/siding.sock";
  app.add_option("--socket", session.socket, "the controller's socket")
      ->envname("SIDING_SOCKET")
      ->capture_default_str();
  app.add_flag("--json", session.json, "print JSON instead of tables");
  app.set_version_flag("--version", "sidingctl " SIDING_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // --json and --socket may come after the verb
  AddSubmit(app, session);
  AddQueries(app, session);
  AddAdmin(app, session);
  AddCheckpoints(app, session);
  AddPolicy(app, session);
  AddSlurm(app, session);
  AddCompletion(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kUsage;
  }
  const absl::StatusOr<int> result = session.run();
  if (result.ok()) return *result;
  std::cerr << "sidingctl: " << app.get_subcommands()[0]->get_name() << ": "
            << std::string(result.status().message()) << "\n";
  if (absl::IsInvalidArgument(result.status())) return kUsage;
  return absl::IsUnavailable(result.status()) ? kNoController : kFailed;
}

}  // namespace siding::cli
