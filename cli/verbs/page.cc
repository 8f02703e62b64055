// sidingctl page: the operators' page on this machine's loopback, with the caller's own rights.
#include "page/server/page.h"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/page_source.h"
#include "cli/stop_signal.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding::cli {
namespace {

constexpr int kHighestPort = 65535;

// One line on stdout, for scripts as well; what else there is to say is for people.
bool Tell(const Session& session, const std::string& address) {
  std::cout << (session.json ? nlohmann::json{{"address", address}}.dump() : address) << std::endl;
  if (isatty(STDERR_FILENO) == 1)
    std::cerr << "opens the page once, in one browser; Ctrl-C ends it" << std::endl;
  return static_cast<bool>(std::cout);
}

absl::StatusOr<int> Serve(Session& session, int port) {
  SIDING_RETURN_IF_ERROR(session.client().Site().status());
  SIDING_RETURN_IF_ERROR(SetUpLogging("sidingctl", "warning"));
  const SteadyClock clock;
  PageSource source(session.connection);
  page::Door door;
  SIDING_ASSIGN_OR_RETURN(
      std::unique_ptr<page::PageServer> server,
      page::PageServer::Start({.address = absl::StrCat("127.0.0.1:", port)}, source, source, door, clock));
  // Until here Ctrl-C ends the process: the start may wait for a controller, and there is nothing to undo.
  const StopSignal stop;
  if (Tell(session, absl::StrCat("http://127.0.0.1:", server->port(), door.Key()))) stop.Wait();
  source.Stop();
  server.reset();
  return 0;
}

}  // namespace

void AddPage(CLI::App& app, Session& session) {
  auto port = std::make_shared<int>(0);
  CLI::App* page = app.add_subcommand(
      "page", "opens the operators' page on this machine, with what you may see; until Ctrl-C");
  page->add_option("--port", *port, "where it listens on 127.0.0.1; default: any that is free")
      ->check(CLI::Range(1, kHighestPort));
  page->footer(
      "prints an address that opens the page once, in one browser. From elsewhere: ssh -t -L "
      "7480:127.0.0.1:7480 HOST sidingctl page --port 7480");
  page->callback([&session, port] { session.run = [&session, port] { return Serve(session, *port); }; });
}

}  // namespace siding::cli
