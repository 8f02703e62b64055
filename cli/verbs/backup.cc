// backup: a copy of the controller's journal, whole and checked before it gets its name.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/verbs/backup_draft.h"
#include "cli/verbs/verbs.h"
#include "common/status.h"
#include "common/units.h"
#include "controller/journal/check.h"
#include "controller/journal/copy.h"

namespace siding::cli {
namespace {

struct BackupFlags {
  std::string file;
  bool check = false, force = false;
};

void Show(int64_t done, int64_t total) {
  if (isatty(STDERR_FILENO) != 1) return;
  std::cerr << "\r" << FormatBytes(Bytes{done}) << " of " << FormatBytes(Bytes{total}) << "\033[K"
            << (done == total ? "\n" : "") << std::flush;
}

absl::Status Fetch(Session& session, BackupDraft& draft) {
  int64_t done = 0, total = 0;
  absl::Status written;
  const absl::Status received = session.client().Backup([&](const v1::BackupPart& part) {
    written = draft.Write(part.data());
    done += static_cast<int64_t>(part.data().size());
    total = part.total();
    Show(done, total);
    return written.ok();
  });
  SIDING_RETURN_IF_ERROR(written);
  SIDING_RETURN_IF_ERROR(received);
  return done == total ? absl::OkStatus()
                       : absl::DataLossError(absl::StrCat("only ", done, " of ", total, " bytes arrived"));
}

void Print(const Session& session, const std::string& file, const JournalSummary& summary) {
  if (session.json) {
    std::cout << nlohmann::json{{"file", file},
                                {"schema", summary.schema},
                                {"events", summary.events},
                                {"last", summary.last},
                                {"last_at_us", ToMicros(summary.last_at)}}
              << "\n";
    return;
  }
  std::cout << file << " is a whole journal: schema " << summary.schema << ", " << summary.events
            << " events";
  if (summary.events > 0)
    std::cout << ", the last is " << summary.last << " of " << FormatTime(summary.last_at);
  std::cout << "\n";
}

absl::StatusOr<int> Check(const Session& session, const std::string& file) {
  SIDING_ASSIGN_OR_RETURN(const JournalSummary summary, CheckJournalCopy(file));
  Print(session, file, summary);
  return 0;
}

absl::StatusOr<int> Backup(Session& session, const std::string& file, bool force) {
  if (std::error_code none; !force && std::filesystem::exists(file, none)) {
    return absl::AlreadyExistsError(
        absl::StrCat(file, " is there already: --force replaces it when the new one is whole"));
  }
  BackupDraft draft(file);
  SIDING_RETURN_IF_ERROR(draft.Begin());
  SIDING_RETURN_IF_ERROR(Fetch(session, draft));
  SIDING_ASSIGN_OR_RETURN(const JournalSummary summary, CheckJournalCopy(draft.path()));
  SIDING_RETURN_IF_ERROR(draft.Name(file));
  Print(session, file, summary);
  return 0;
}

}  // namespace

void AddBackup(CLI::App& app, Session& session) {
  auto flags = std::make_shared<BackupFlags>();
  CLI::App* verb =
      app.add_subcommand("backup", "write a copy of the controller's journal to a file, for operators");
  verb->add_option("file", flags->file, "the copy")->required();
  verb->add_flag("--force", flags->force, "replace an existing file, when the new one is complete");
  verb->add_flag("--check", flags->check, "check the file instead; needs no controller");
  verb->callback([flags, &session] {
    session.run = [flags, &session] {
      return flags->check ? Check(session, flags->file) : Backup(session, flags->file, flags->force);
    };
  });
}

}  // namespace siding::cli
