// bundle: what a report of a fault needs, in one file.
#include "cli/bundle/bundle.h"

#include <deque>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/doctor/report.h"
#include "cli/moment.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/directory.h"
#include "common/files.h"
#include "common/run_program.h"
#include "common/status.h"

namespace siding::cli {
namespace {

constexpr size_t kMostOfOne = 16 << 20;  // bytes of a text
constexpr size_t kMostEvents = 50'000;
constexpr Duration kProgramLimit = std::chrono::minutes(2);

struct BundleFlags {
  std::string file, since = "24h", settings = "/etc/siding";
  bool force = false;
};

using Entries = std::vector<BundleEntry>;

void Add(Entries& entries, const std::string& name, const std::string& what,
         const absl::StatusOr<std::string>& text) {
  entries.push_back({name, what, EndOf(text.value_or(""), kMostOfOne),
                     text.ok() ? "" : std::string(text.status().message())});
}

template <class Message>
void AddAnswer(Entries& entries, const std::string& name, const std::string& what,
               const absl::StatusOr<Message>& answer) {
  Add(entries, "controller/" + name, what,
      answer.ok() ? absl::StatusOr<std::string>(Session::ToJson(*answer) + "\n") : answer.status());
}

// The newest, as `events --json` prints them.
absl::StatusOr<std::string> EventsSince(Client& client, Time since) {
  v1::EventsRequest request;
  request.set_since_us(ToMicros(since));
  std::deque<std::string> lines;
  SIDING_RETURN_IF_ERROR(client.Events(request, [&](const v1::Event& event) {
    lines.push_back(Session::ToJson(event));
    if (lines.size() > kMostEvents) lines.pop_front();
    return true;
  }));
  return lines.empty() ? "" : absl::StrJoin(lines, "\n") + "\n";
}

absl::StatusOr<std::string> LooksOf(Client& client) {
  std::string text;
  for (const auto& [address, status] : client.LookAtEach())
    absl::StrAppend(&text, address, ": ", status.ok() ? "it answers" : status.message(), "\n");
  return text;
}

// Nothing of what jobs run is asked for, so it is in no answer.
void AskController(Session& session, Time since, Entries& entries) {
  Client& client = session.client();
  Add(entries, "controller/controllers.txt", "which controllers answer", LooksOf(client));
  AddAnswer(entries, "site.json", "its time, its cluster manager, and who asked", client.Site());
  AddAnswer(entries, "nodes.json", "nodes", client.Nodes());
  v1::ListJobsRequest all;
  all.set_all(true);
  all.set_brief(true);
  AddAnswer(entries, "jobs.json", "jobs, ended ones too", client.Jobs(all));
  AddAnswer(entries, "checkpoints.json", "checkpoints", client.Checkpoints(/*job=*/0));
  AddAnswer(entries, "trends.json", "hours and days", client.Trends());
  AddAnswer(entries, "policy.json", "the policy in force", client.Policy());
  Add(entries, "controller/events.json", "events, one a line", EventsSince(client, since));
  const auto answers = AskForDoctor(session);
  Add(entries, "controller/doctor.txt", "what is to be mended",
      answers.ok() ? absl::StatusOr<std::string>(FindingsText(Examine(*answers))) : answers.status());
}

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& argv) {
  SIDING_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(argv, kProgramLimit));
  if (result.exit_code != 0 && result.output.empty())
    return absl::InternalError(absl::StrCat(argv[0], " ended with ", result.exit_code, ": ", result.errors));
  return absl::StrCat(result.output, result.errors);
}

void LookAtMachine(const std::string& since, Entries& entries) {
  Add(entries, "machine/version.txt", "this program's version", "sidingctl " SIDING_VERSION "\n");
  Add(entries, "machine/os-release.txt", "the distribution", ReadFile("/etc/os-release"));
  Add(entries, "machine/meminfo.txt", "memory", ReadFile("/proc/meminfo"));
  const std::vector<std::tuple<std::string, std::string, std::vector<std::string>>> programs = {
      {"kernel.txt", "the kernel", {"uname", "-a"}},
      {"disks.txt", "file systems and what is free", {"df", "--print-type"}},
      {"services.txt",
       "siding's services",
       {"systemctl", "show",
        "--property=Id,ActiveState,SubState,NRestarts,ExecMainStatus,ActiveEnterTimestamp", "sidingd",
        "siding-agent"}},
      {"sidingd.log",
       "the controller's log",
       {"journalctl", "--no-pager", "--output=short-iso-precise", "--lines=100000", "--unit=sidingd",
        "--since=" + since}},
      {"siding-agent.log",
       "the agent's log",
       {"journalctl", "--no-pager", "--output=short-iso-precise", "--lines=100000", "--unit=siding-agent",
        "--since=" + since}},
      {"agent-check.txt", "what works on this machine", {"siding-agent", "--check"}}};
  for (const auto& [name, what, argv] : programs) Add(entries, "machine/" + name, what, OutputOf(argv));
}

// Settings are not secret; keys beside them are, and are left where they are.
void ReadSettings(const std::string& folder, Entries& entries) {
  const auto names = ListFolder(folder);
  if (!names.ok()) return Add(entries, "settings", "settings of " + folder, names.status());
  for (const std::string& name : *names) {
    if (!absl::EndsWith(name, ".yaml") && !absl::EndsWith(name, ".env")) continue;
    const auto text = ReadFile(absl::StrCat(folder, "/", name));
    Add(entries, absl::StrCat("settings/", name.substr(0, 50)),
        "settings, without what addresses have behind their host",
        text.ok() ? absl::StatusOr<std::string>(WithoutSecretUrls(*text)) : text.status());
  }
}

void Print(const Session& session, const std::string& file, const Entries& entries, Time now) {
  if (!session.json) {
    std::cout << ContentsOf(entries, now) << "\n"
              << file << " has all of this: read it before you send it to somebody\n";
    return;
  }
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  for (const BundleEntry& entry : entries)
    listed.push_back({{"name", entry.name},
                      {"what", entry.what},
                      {"bytes", entry.text.size()},
                      {"missing", entry.missing}});
  std::cout << nlohmann::ordered_json{{"file", file}, {"entries", listed}} << "\n";
}

absl::StatusOr<int> Bundle(Session& session, const BundleFlags& flags) {
  const Time now = SystemClock().Now();
  const auto since = ParsePast(flags.since, now);
  if (!since.ok()) return Annotate(since.status(), "--since");
  const std::string name = absl::StrCat(
      "siding-bundle-",
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromUnixMicros(ToMicros(now)), absl::UTCTimeZone()));
  const std::string file = flags.file.empty() ? name + ".tar.gz" : flags.file;
  if (std::error_code none; !flags.force && std::filesystem::exists(file, none))
    return absl::AlreadyExistsError(file + " is there already: --force replaces it");
  Entries entries;
  AskController(session, *since, entries);
  LookAtMachine(absl::StrCat("@", ToMicros(*since) / 1'000'000), entries);
  ReadSettings(flags.settings, entries);
  const std::string packed = Pack(name, entries, now);
  if (packed.empty()) return absl::ResourceExhaustedError("there is no memory to pack it");
  SIDING_RETURN_IF_ERROR(WriteFileDurably(file, packed, 0600));
  Print(session, file, entries, now);
  return 0;
}

}  // namespace

void AddBundle(CLI::App& app, Session& session) {
  auto flags = std::make_shared<BundleFlags>();
  CLI::App* verb =
      app.add_subcommand("bundle", "collect what a report of a fault needs in one file, without secrets");
  verb->add_option("file", flags->file, "the file; default: siding-bundle-TIME.tar.gz");
  verb->add_option("--since", flags->since, "logs and events from then on: a time, or a duration ago")
      ->capture_default_str();
  verb->add_option("--settings", flags->settings, "the folder with siding's settings")->capture_default_str();
  verb->add_flag("--force", flags->force, "replace an existing file");
  verb->footer(
      "What the controller says is collected, and what this machine says of siding's services: for a fault "
      "of a node run "
      "it there. What cannot be had is named and left out. Commands and environments of jobs, keys and "
      "certificates are "
      "not in it; names of users and jobs are.");
  verb->callback([flags, &session] { session.run = [flags, &session] { return Bundle(session, *flags); }; });
}

}  // namespace siding::cli
