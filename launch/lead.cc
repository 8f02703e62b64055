#include "launch/lead.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "launch/connect.h"
#include "launch/message.h"
#include "launch/process.h"
#include "launch/settings.h"

namespace siding::launch {
namespace {

// Longer than the others wait for what they run.
constexpr Duration kPatienceForOthers = std::chrono::seconds(15);

void Warn(const std::string& text) { std::fprintf(stderr, "siding-mpirun: %s\n", text.c_str()); }

// mpirun as its user means it: by a path it also says where it is installed, to all nodes.
absl::StatusOr<std::string> NameOfMpirun(const Arguments& arguments) {
  const char* const variable = std::getenv("SIDING_MPIRUN");
  std::string name = arguments.mpirun;
  if (name.empty() && variable != nullptr) name = variable;
  if (name.empty()) name = "mpirun";
  const auto found = FindProgram(name, std::getenv("PATH"));
  if (!found.ok())
    return absl::NotFoundError(absl::StrCat(found.status().message(),
                                            ": expected Open MPI's mpirun (--mpirun PATH, $SIDING_MPIRUN)"));
  return name;
}

// In the job's own folder for such files. mpirun reads it when it starts.
absl::StatusOr<std::string> WriteHostFile(const Gang& gang) {
  const char* const folder = std::getenv("TMPDIR");
  std::string path =
      absl::StrCat(folder == nullptr || *folder == '\0' ? "/tmp" : folder, "/siding-mpirun.XXXXXX");
  const UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "create " + path);
  SIDING_RETURN_IF_ERROR(WriteAll(fd, HostFile(gang), path));
  return path;
}

class Leader {
 public:
  Leader(const Gang& gang, Signals signals) : gang_(gang), signals_(std::move(signals)) {}

  // kCancelled: told to end.
  absl::Status ConnectToAll(Duration patience) {
    const auto stop = [this] {
      while (const auto number = signals_.Next()) {
        if (IsStop(*number)) stopped_by_ = *number;
      }
      return stopped_by_ != 0;
    };
    for (int rank = 1; rank < static_cast<int>(gang_.addresses.size()); ++rank) {
      auto socket = Connect(gang_.addresses[0], gang_.addresses[rank], kPort, patience, stop);
      if (!socket.ok()) return Annotate(socket.status(), absl::StrCat("rank ", rank, " has not come"));
      const auto peer = followers_.emplace(rank, *std::move(socket)).first;
      SIDING_RETURN_IF_ERROR(peer->second.Send({Kind::kFollow, ""}));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> Run(const std::vector<std::string>& command) {
    SIDING_ASSIGN_OR_RETURN(mpirun_, StartProgram(command, signals_.before()));
    std::optional<int> code;
    while (!code) {
      for (const int fd : AwaitInput(Descriptors())) {
        if (fd == signals_.fd())
          code = TakeSignals();
        else
          Hear(fd);
      }
    }
    return *code;
  }

  // Tells the others, and waits until they have ended: with this task its network goes, and what it had to
  // say.
  void End() {
    for (auto& [rank, follower] : followers_) (void)follower.Send({Kind::kEnd, ""});
    for (Duration waited(0); !followers_.empty() && waited < kPatienceForOthers;) {
      const auto ready = AwaitInput(Descriptors());
      if (ready.empty()) waited += kMostAwaited;
      for (const int fd : ready) {
        if (fd == signals_.fd())
          while (signals_.Next()) {
          }
        else
          HearEnd(fd);
      }
    }
  }

  int stopped_by() const { return stopped_by_; }

 private:
  using Followers = std::map<int, Peer>;

  std::vector<int> Descriptors() const {
    std::vector<int> fds = {signals_.fd()};
    for (const auto& [rank, follower] : followers_) fds.push_back(follower.fd());
    return fds;
  }

  Followers::iterator FollowerAt(int fd) {
    return std::find_if(followers_.begin(), followers_.end(),
                        [fd](const auto& entry) { return entry.second.fd() == fd; });
  }

  // mpirun's exit code, if it has ended.
  std::optional<int> TakeSignals() {
    std::optional<int> code;
    while (const auto number = signals_.Next()) {
      if (IsStop(*number))
        Stop(*number);
      else if (*number != SIGCHLD)
        kill(mpirun_, *number);
    }
    int status = 0;
    if (waitpid(mpirun_, &status, WNOHANG) == mpirun_) code = ExitCode(status);
    return code;
  }

  void Stop(int number) {
    if (stopped_by_ != 0) return;
    stopped_by_ = number;
    kill(mpirun_, number);
  }

  void Hear(int fd) {
    const auto follower = FollowerAt(fd);
    if (follower == followers_.end()) return;
    const auto message = follower->second.Receive();
    if (message.ok() && !*message) return;
    if (message.ok() && (*message)->kind == Kind::kStop) return Stop(NumberIn(**message).value_or(SIGTERM));
    Warn(absl::StrCat("rank ", follower->first, " has ended: ",
                      message.ok() ? "it has said what is not expected" : message.status().message()));
    followers_.erase(follower);
    Stop(SIGTERM);
  }

  void HearEnd(int fd) {
    const auto follower = FollowerAt(fd);
    if (follower == followers_.end()) return;
    const auto message = follower->second.Receive();
    if (!message.ok() || (*message && (*message)->kind == Kind::kEnded)) followers_.erase(follower);
  }

  const Gang& gang_;
  const Signals signals_;
  Followers followers_;  // by rank
  pid_t mpirun_ = -1;
  int stopped_by_ = 0;  // the signal; 0: none
};

}  // namespace

absl::StatusOr<int> Lead(const Gang& gang, const Arguments& arguments) {
  SIDING_ASSIGN_OR_RETURN(const std::string mpirun, NameOfMpirun(arguments));
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError("/proc/self/exe: " + error.message());
  SIDING_ASSIGN_OR_RETURN(const std::string host_file, WriteHostFile(gang));
  SIDING_ASSIGN_OR_RETURN(const auto settings, MpirunSettings(gang, self, host_file, geteuid() == 0));
  for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 0);

  SIDING_ASSIGN_OR_RETURN(Signals signals, Signals::Take());
  Leader leader(gang, std::move(signals));
  const absl::Status connected = leader.ConnectToAll(arguments.patience);
  if (absl::IsCancelled(connected)) return 128 + leader.stopped_by();
  SIDING_RETURN_IF_ERROR(connected);
  std::vector<std::string> command = {mpirun};
  command.insert(command.end(), arguments.rest.begin(), arguments.rest.end());
  SIDING_ASSIGN_OR_RETURN(const int code, leader.Run(command));
  unlink(host_file.c_str());
  leader.End();
  return code;
}

}  // namespace siding::launch
