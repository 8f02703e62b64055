#include "cli/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/expiry.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/manual/manual.h"
#include "common/tls/certificates.h"
#include "common/utf8.h"

namespace siding::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNoController = 3;
constexpr char kUsersCommand[] = "command";  // a positional argument of verbs that run one

// Each has an environment variable, so that a site can say once for all how its controller is reached.
void AddConnection(CLI::App& app, Connection& connection) {
  const char* socket = std::getenv("SIDING_SOCKET");  // from before there were controllers elsewhere
  connection.controller = socket != nullptr ? socket : "/run/siding/siding.sock";
  app.add_option("--socket,--controller", connection.controller,
                 "the controller's unix socket, or its HOST:PORT; with commas, those that may be active")
      ->envname("SIDING_CONTROLLER")
      ->capture_default_str();
  const std::string with = "with HOST:PORT: ";
  app.add_option("--ca", connection.tls.ca, with + "the authority that issued the controller's certificate")
      ->envname("SIDING_CA");
  app.add_option("--certificate", connection.tls.certificate, with + "your certificate")
      ->envname("SIDING_CERTIFICATE");
  app.add_option("--key", connection.tls.key, with + "the key to it")->envname("SIDING_KEY");
  app.add_option("--revoked", connection.tls.revoked,
                 with + "certificates that the authority has taken back: its lists (CRLs)")
      ->envname("SIDING_REVOKED");
  app.add_flag("--munge", connection.munge, with + "authenticate with MUNGE instead")
      ->envname("SIDING_MUNGE");
  app.add_option("--munge-socket", connection.munge_socket, "munged's socket; default: MUNGE's own")
      ->envname("SIDING_MUNGE_SOCKET");
}

// What went wrong may name what users have named: lines are kept, but nothing else speaks to the terminal.
std::string ForTheTerminal(const std::string& message) {
  return absl::StrJoin(absl::StrSplit(message, '\n'), "\n", [](std::string* out, absl::string_view line) {
    out->append(OneLogLine(std::string(line)));
  });
}

// An empty value is an unset variable of a shell, and a "--" the end of the options, of which the last then
// has none. Only arguments of a user's program may be empty.
std::string NoValue(const std::string& value) {
  return value.empty() || value == "--" ? "expected a value, got none" : "";
}

void RefuseEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0 && option->get_name() != kUsersCommand) option->check(NoValue);
  }
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) RefuseEmptyValues(*verb);
}

// "--name=" with nothing behind it: the parser would take the next argument for its value.
std::string OptionWithoutValue(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") break;
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1)
      return argument.substr(0, argument.size() - 1);
  }
  return "";
}

// How many letters are to be put in, left out or replaced to make one of the other.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t before = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = before + (a[i - 1] == b[j - 1] ? 0 : 1);
      before = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// What is to stand in the place of `word`: the verb of `app` that was most likely meant, or all if they are
// few.
std::string ExpectedVerbs(const CLI::App& app, const std::string& word) {
  constexpr size_t kFew = 6;
  std::vector<std::string> verbs;
  std::string nearest;
  size_t least = std::min<size_t>(3, word.size() / 2 + 1);  // two slips, and not every other letter
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
    const size_t distance = Distance(word, verbs.back());
    if (distance >= least) continue;
    least = distance;
    nearest = verbs.back();
  }
  if (verbs.size() <= kFew) return absl::StrCat("one of ", absl::StrJoin(verbs, ", "));
  return absl::StrCat("one of its verbs", nearest.empty() ? "" : ", such as " + nearest);
}

// Of a command line that names no verb: the parser says that one is required, whatever stands in its place.
std::string NoVerb(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands()[0];
  for (const std::string& word : app.remaining(true)) {
    if (word.starts_with("-")) return absl::StrCat("unknown option '", word, "'");
    return absl::StrCat("unknown verb '", word, "': expected ", ExpectedVerbs(*at, word));
  }
  const std::string example = at == &app ? "submit or jobs" : at->get_subcommands(nullptr)[0]->get_name();
  return absl::StrCat("expected a verb, such as ", example);
}

// The parser may fail before it comes to this option.
bool AsksForJson(int argc, const char* const* argv) {
  const auto* const end = std::find(argv + 1, argv + argc, std::string_view("--"));
  return std::find(argv + 1, end, std::string_view("--json")) != end;
}

int UsageError(const CLI::App& app, const std::string& what, bool json) {
  if (json) Session::PrintFailure(absl::InvalidArgumentError(what));
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  const std::string verb = verbs.empty() ? "" : verbs[0]->get_name();
  std::cerr << "sidingctl: " << (verb.empty() ? "" : verb + ": ") << ForTheTerminal(what) << "\n'sidingctl "
            << (verb.empty() ? "" : verb + " ") << "--help' says what is expected\n";
  return kUsage;
}

// Once for all connections of this run. Scripts are told of what is to be done at once; people earlier.
void TellOfExpiry(const Connection& connection) {
  const auto text = connection.tls.certificate.empty() ? "" : ReadFile(connection.tls.certificate);
  const auto ends = text.ok() ? EndOfValidity(*text) : text.status();
  if (!ends.ok()) return;  // whoever connects with it says more
  const Time now = SystemClock().Now();
  const Expiry least = isatty(STDERR_FILENO) == 1 ? Expiry::kWithinAMonth : Expiry::kWithinAWeek;
  if (HowNear(*ends, now) >= least)
    std::cerr << "sidingctl: your certificate " << connection.tls.certificate << " " << ExpiryText(*ends, now)
              << ": renew it\n";
}

}  // namespace

int Run(int argc, const char* const* argv) {
  // No message can carry other bytes.
  for (int i = 1; i < argc; ++i) {
    if (!FindNotUtf8(argv[i])) continue;
    std::cerr << "sidingctl: argument " << i << ", '" << ToUtf8(argv[i]) << "': expected text in UTF-8\n";
    return kUsage;
  }
  CLI::App app(
      "sidingctl talks to siding's controller: submit jobs, see what happens and why, and act by hand");
  Session session;
  AddConnection(app, session.connection);
  app.add_flag("--json", session.json, "print JSON instead of tables");
  app.set_version_flag("--version", "sidingctl " SIDING_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // --json and --socket may come after the verb
  AddSubmit(app, session);
  AddQueries(app, session);
  AddDoctor(app, session);
  AddBundle(app, session);
  AddAdmin(app, session);
  AddQueue(app, session);
  AddCheckpoints(app, session);
  AddPolicy(app, session);
  AddSlurm(app, session);
  AddCerts(app, session);
  AddBackup(app, session);
  AddPage(app, session);
  AddCompletion(app, session);
  AddManual(app, {"sidingctl", 1, SIDING_VERSION, "/usr/share/doc/siding/user/sidingctl.md"});
  RefuseEmptyValues(app);
  const std::string without_value = OptionWithoutValue(argc, argv);
  const bool json = AsksForJson(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::RequiredError& error) {
    const bool verb = std::string(error.what()).find("subcommand") != std::string::npos;
    return UsageError(app, verb ? NoVerb(app) : error.what(), json);
  } catch (const CLI::ParseError& error) {
    return UsageError(app, without_value.empty() ? error.what() : without_value + ": " + NoValue(""), json);
  }
  if (!without_value.empty()) return UsageError(app, without_value + ": " + NoValue(""), json);
  TellOfExpiry(session.connection);
  absl::StatusOr<int> result = session.run();
  std::cout.flush();
  if (result.ok() && !std::cout) result = absl::DataLossError("its output could not be written");
  if (result.ok()) return *result;
  if (session.json) Session::PrintFailure(result.status());
  std::cerr << "sidingctl: " << app.get_subcommands()[0]->get_name() << ": "
            << ForTheTerminal(std::string(result.status().message())) << "\n";
  if (absl::IsInvalidArgument(result.status())) return kUsage;
  return absl::IsUnavailable(result.status()) ? kNoController : kFailed;
}

}  // namespace siding::cli
