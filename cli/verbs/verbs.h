// The verbs of sidingctl. Each file adds its own to the program and sets `run` when it was asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client.h"
#include "cli/render.h"

namespace google::protobuf {
class Message;
}

namespace siding::cli {

struct Answers;

// What every verb may use. Lives as long as the program.
struct Session {
  Connection connection;
  bool json = false;
  // Set by the verb that was given; returns the exit code.
  std::function<absl::StatusOr<int>()> run;

  Client& client();
  // For verbs that go on until somebody ends them: see Client::Outlast. People are told on stderr.
  absl::Status OutlastController();
  Style style() const;
  // The message as JSON in a line of its own, or the text for people.
  std::string Text(const google::protobuf::Message& message, const std::string& text) const;
  // ... on stdout.
  void Print(const google::protobuf::Message& message, const std::string& text) const;
  // The message in the field names of the API.
  static std::string ToJson(const google::protobuf::Message& message);
  // For verbs with nothing to say but that it is done.
  void Done(const std::string& text) const;
  // What a program reads that asked for JSON where there is nothing else.
  static void PrintFailure(const absl::Status& status);

 private:
  std::unique_ptr<Client> client_;
};

void AddSubmit(CLI::App& app, Session& session);   // submit, plan
void AddQueries(CLI::App& app, Session& session);  // jobs, nodes, top, explain, events, trends
void AddDoctor(CLI::App& app, Session& session);   // doctor
// suspend, resume, restart, checkpoint, vacate, migrate, kill, cordon, lost, wait
void AddAdmin(CLI::App& app, Session& session);
void AddQueue(CLI::App& app, Session& session);        // hold, release, update
void AddCheckpoints(CLI::App& app, Session& session);  // checkpoints list|show|verify|delete
void AddPolicy(CLI::App& app, Session& session);       // policy check|show|reload
void AddSlurm(CLI::App& app, Session& session);        // slurm cleanup
void AddCerts(CLI::App& app, Session& session);        // certs init|controller|node|user
void AddBackup(CLI::App& app, Session& session);       // backup
void AddBundle(CLI::App& app, Session& session);       // bundle
void AddPage(CLI::App& app, Session& session);         // page
void AddCompletion(CLI::App& app, Session& session);   // completion bash|zsh|fish

// Follows a job until `over` says so, with a line of progress on stderr: redrawn on a terminal, a line a
// second at most elsewhere. A controller that is restarted meanwhile is waited for. The job as it was last.
absl::StatusOr<v1::Job> Follow(Session& session, int64_t job,
                               const std::function<bool(const v1::Job&)>& over);

// Something that is asked of one job.
using JobOrder = std::function<absl::Status(int64_t id)>;
// For each of them, whatever becomes of the others. Of those that fail the first is told of as the verb's
// error, and the others on stderr.
absl::Status ForEachJob(const std::vector<int64_t>& jobs, const JobOrder& act);

// Of the controller that answers, all that `doctor` looks at.
absl::StatusOr<Answers> AskForDoctor(Session& session);

// What `wait` exits with for a job that has ended: 0 only if it is done.
int ExitCodeOf(const v1::Job& job);

// Has Slurm's sbatch submit the job, as the caller, and prints its number. With `wait` until it has ended.
// The exit code is sbatch's, which has said what was wrong.
absl::StatusOr<int> SubmitToSlurm(const Session& session, const v1::JobSpec& spec, bool wait);

}  // namespace siding::cli
