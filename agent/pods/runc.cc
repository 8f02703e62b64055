#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/criu/criu.h"
#include "agent/pods/container_runtime.h"
#include "common/files.h"
#include "common/run_program.h"
#include "common/status.h"

namespace siding {
namespace {

using Json = nlohmann::json;

// The file that makes a cgroup run again, and what is written there: of version 1, or 2.
struct Thaw {
  std::string file;
  const char* word;
};

// By what runc remembers of a container ("cgroup_paths": of each hierarchy of version 1, or of the one).
std::optional<Thaw> ThawOf(const Json& state) {
  const auto paths = state.find("cgroup_paths");
  if (paths == state.end() || !paths->is_object()) return std::nullopt;
  if (const std::string first = paths->value("freezer", ""); !first.empty())
    return Thaw{first + "/freezer.state", "THAWED"};
  if (const std::string second = paths->value("", ""); !second.empty())
    return Thaw{second + "/cgroup.freeze", "0"};
  return std::nullopt;
}

class Runc final : public ContainerRuntime {
 public:
  Runc(std::string program, const std::string& criu_folder, const RuncPatience& patience)
      : program_(std::move(program)), patience_(patience) {
    const char* path = std::getenv("PATH");
    environment_["PATH"] =
        absl::StrCat(criu_folder, criu_folder.empty() ? "" : ":", path != nullptr ? path : "");
  }

  absl::StatusOr<pid_t> InitOf(const ContainerRef& container) override {
    SIDING_ASSIGN_OR_RETURN(const Json state, State(container));
    const pid_t pid = state.value("pid", 0);
    const std::string status = state.value("status", "");
    if (pid <= 0 || status == "stopped")
      return absl::NotFoundError(absl::StrCat("container ", container.id, " has ended"));
    return pid;
  }
  absl::Status Pause(const ContainerRef& container) override {
    SIDING_ASSIGN_OR_RETURN(const bool paused, IsPaused(container));
    return paused ? absl::OkStatus() : Run(container, {"pause", container.id}).status();
  }
  absl::Status Resume(const ContainerRef& container) override {
    const absl::Status resumed = ResumeByRunc(container);
    if (resumed.ok() || absl::IsNotFound(resumed)) return resumed;
    return ThawWithoutRunc(container) ? absl::OkStatus() : resumed;
  }
  absl::StatusOr<bool> IsPaused(const ContainerRef& container) override {
    SIDING_ASSIGN_OR_RETURN(const Json state, State(container));
    return state.value("status", "") == "paused";
  }
  // CRIU leaves processes in a frozen cgroup frozen, so nothing of the container's runs between the image and
  // the decision about it.
  absl::Status Checkpoint(const ContainerRef& container, const std::string& image_folder,
                          const std::string& work_folder, const std::atomic<bool>& abandon) override {
    const Interruption interruption{[&] { return abandon.load(); },
                                    [&](pid_t runc) { EndRunc(runc, RuncWork::kDump, patience_.undo); }};
    const absl::Status done = Run(container,
                                  {"checkpoint", "--leave-running", "--file-locks", "--image-path",
                                   image_folder, "--work-path", work_folder, container.id},
                                  patience_.checkpoint, interruption)
                                  .status();
    if (done.ok() || absl::IsAborted(done) || absl::IsDeadlineExceeded(done)) return done;
    const auto log = ReadFile(work_folder + "/dump.log");
    const std::string said = log.ok() ? WhyCriuFailed(*log).why : "";
    if (said.empty()) return done;
    return SaysFull(said) ? absl::ResourceExhaustedError(said) : absl::InternalError(said);
  }

 private:
  absl::Status ResumeByRunc(const ContainerRef& container) {
    SIDING_ASSIGN_OR_RETURN(const bool paused, IsPaused(container));
    return paused ? Run(container, {"resume", container.id}).status() : absl::OkStatus();
  }

  // runc looks at the cgroup, too, and has no record of its own of who is paused.
  static bool ThawWithoutRunc(const ContainerRef& container) {
    const auto text = ReadFile(absl::StrCat(container.root, "/", container.id, "/state.json"));
    const Json state = text.ok() ? Json::parse(*text, nullptr, false) : Json();
    const std::optional<Thaw> thaw = state.is_object() ? ThawOf(state) : std::nullopt;
    if (!thaw) return false;
    const UniqueFd file(open(thaw->file.c_str(), O_WRONLY | O_CLOEXEC));
    const auto size = static_cast<ssize_t>(std::strlen(thaw->word));
    return file.valid() && write(file.get(), thaw->word, std::strlen(thaw->word)) == size;
  }

  absl::StatusOr<Json> State(const ContainerRef& container) {
    SIDING_ASSIGN_OR_RETURN(const std::string text, Run(container, {"state", container.id}));
    Json state = Json::parse(text, nullptr, false);
    if (!state.is_object()) return absl::InternalError(absl::StrCat(program_, " state: expected JSON"));
    return state;
  }

  absl::StatusOr<std::string> Run(const ContainerRef& container, const std::vector<std::string>& words) {
    return Run(container, words, patience_.usual, {});
  }
  absl::StatusOr<std::string> Run(const ContainerRef& container, const std::vector<std::string>& words,
                                  Duration limit, const Interruption& interruption) {
    std::vector<std::string> argv = {program_, "--root", container.root};
    argv.insert(argv.end(), words.begin(), words.end());
    const absl::StatusOr<ProgramResult> ran = RunProgram(argv, limit, environment_, interruption);
    // There is a container, whether or not there is a runc.
    if (absl::IsNotFound(ran.status())) return absl::UnavailableError(std::string(ran.status().message()));
    if (!ran.ok()) return Annotate(ran.status(), "runc " + words.front());
    if (ran->exit_code == 0) return ran->output;
    const std::string said =
        absl::StrCat("runc ", words.front(), " ", container.id, ": ", absl::StripSuffix(ran->errors, "\n"));
    const bool gone = said.find("does not exist") != std::string::npos;
    return gone ? absl::NotFoundError(said) : absl::InternalError(said);
  }

  const std::string program_;
  const RuncPatience patience_;
  std::map<std::string, std::string> environment_;
};

}  // namespace

std::unique_ptr<ContainerRuntime> NewRunc(const std::string& program, const std::string& criu_folder,
                                          const RuncPatience& patience) {
  return std::make_unique<Runc>(program.empty() ? "runc" : program, criu_folder, patience);
}

}  // namespace siding
