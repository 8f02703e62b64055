#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
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

constexpr Duration kUsual = std::chrono::seconds(30);
constexpr Duration kDump = std::chrono::minutes(60);

class Runc final : public ContainerRuntime {
 public:
  Runc(std::string program, const std::string& criu_folder) : program_(std::move(program)) {
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
    return paused ? absl::OkStatus() : Run(container, {"pause", container.id}, kUsual).status();
  }
  absl::Status Resume(const ContainerRef& container) override {
    SIDING_ASSIGN_OR_RETURN(const bool paused, IsPaused(container));
    return paused ? Run(container, {"resume", container.id}, kUsual).status() : absl::OkStatus();
  }
  absl::StatusOr<bool> IsPaused(const ContainerRef& container) override {
    SIDING_ASSIGN_OR_RETURN(const Json state, State(container));
    return state.value("status", "") == "paused";
  }
  // CRIU leaves processes in a frozen cgroup frozen, so nothing of the container's runs between the image and
  // the decision about it.
  absl::Status Checkpoint(const ContainerRef& container, const std::string& image_folder,
                          const std::string& work_folder) override {
    const absl::Status done = Run(container,
                                  {"checkpoint", "--leave-running", "--file-locks", "--image-path",
                                   image_folder, "--work-path", work_folder, container.id},
                                  kDump)
                                  .status();
    if (done.ok()) return done;
    const auto log = ReadFile(work_folder + "/dump.log");
    const std::string said = log.ok() ? WhyCriuFailed(*log).why : "";
    if (said.empty()) return done;
    return SaysFull(said) ? absl::ResourceExhaustedError(said) : absl::InternalError(said);
  }

 private:
  absl::StatusOr<Json> State(const ContainerRef& container) {
    SIDING_ASSIGN_OR_RETURN(const std::string text, Run(container, {"state", container.id}, kUsual));
    Json state = Json::parse(text, nullptr, false);
    if (!state.is_object()) return absl::InternalError(absl::StrCat(program_, " state: expected JSON"));
    return state;
  }

  absl::StatusOr<std::string> Run(const ContainerRef& container, const std::vector<std::string>& words,
                                  Duration limit) {
    std::vector<std::string> argv = {program_, "--root", container.root};
    argv.insert(argv.end(), words.begin(), words.end());
    SIDING_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(argv, limit, environment_));
    if (result.exit_code == 0) return result.output;
    const std::string said =
        absl::StrCat("runc ", words.front(), " ", container.id, ": ", absl::StripSuffix(result.errors, "\n"));
    const bool gone = said.find("does not exist") != std::string::npos;
    return gone ? absl::NotFoundError(said) : absl::InternalError(said);
  }

  const std::string program_;
  std::map<std::string, std::string> environment_;
};

}  // namespace

std::unique_ptr<ContainerRuntime> NewRunc(const std::string& program, const std::string& criu_folder) {
  return std::make_unique<Runc>(program.empty() ? "runc" : program, criu_folder);
}

}  // namespace siding
