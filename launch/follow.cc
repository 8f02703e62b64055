#include "launch/follow.h"

#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "launch/connect.h"
#include "launch/message.h"
#include "launch/process.h"

namespace siding::launch {
namespace {

constexpr Duration kPatienceForChildren = std::chrono::seconds(10);
constexpr Duration kFarewell = std::chrono::seconds(2);

// What mpirun sends is written for the user's shell, as its ssh would have it, if that is one it knows.
std::string Shell() {
  const passwd* const user = getpwuid(geteuid());
  if (user == nullptr || user->pw_shell == nullptr) return "/bin/sh";
  const std::string name = std::filesystem::path(user->pw_shell).filename();
  return name == "csh" || name == "tcsh" ? user->pw_shell : "/bin/sh";
}

class Follower {
 public:
  Follower(const Gang& gang, Signals signals, UniqueFd listener)
      : gang_(gang), signals_(std::move(signals)), listener_(std::move(listener)) {}

  absl::StatusOr<int> Run(Duration patience) {
    for (Duration waited(0); phase_ == Phase::kWaits && waited <= patience;) Count(waited);
    if (phase_ == Phase::kWaits)
      return absl::DeadlineExceededError("rank 0 has not come for " + FormatDuration(patience));
    while (phase_ == Phase::kFollows) Turn();
    if (phase_ == Phase::kStopped) return 128 + stopped_by_;
    if (phase_ == Phase::kAlone) {
      for (const pid_t child : children_) kill(-child, SIGTERM);
      return absl::AbortedError("rank 0 has gone");
    }
    for (Duration waited(0); !children_.empty() && waited < kPatienceForChildren;) Count(waited);
    // Until it has heard it: with this task its network goes.
    if (leader_ != nullptr) (void)leader_->peer.Send({Kind::kEnded, ""});
    for (Duration waited(0); leader_ != nullptr && waited < kFarewell;) Count(waited);
    return 0;
  }

 private:
  struct Connection {
    Peer peer;
    pid_t runs = -1;  // of a relay
  };
  using Connections = std::list<Connection>;

  enum class Phase {
    kWaits,    // for rank 0
    kFollows,  // does what it is asked for
    kEnds,     // mpirun has ended
    kAlone,    // rank 0 has gone
    kStopped,  // told to end before rank 0 came
  };

  void Count(Duration& waited) {
    if (!Turn()) waited += kMostAwaited;
  }

  // Takes what has come; false: nothing has, for a while.
  bool Turn() {
    std::vector<int> fds = {signals_.fd(), listener_.get()};
    for (const Connection& connection : connections_) fds.push_back(connection.peer.fd());
    const std::vector<int> ready = AwaitInput(fds);
    for (const int fd : ready) {
      if (fd == signals_.fd())
        TakeSignals();
      else if (fd == listener_.get())
        TakeConnection();
      else
        Hear(fd);
    }
    return !ready.empty();
  }

  void TakeConnection() {
    UniqueFd socket = Accept(listener_, gang_.addresses[0]);
    if (socket.valid()) connections_.push_back({Peer(std::move(socket))});
  }

  void TakeSignals() {
    while (const auto number = signals_.Next()) {
      if (!IsStop(*number)) continue;  // others reach the ranks through mpirun
      if (leader_ != nullptr) (void)leader_->peer.Send({Kind::kStop, std::to_string(*number)});
      if (phase_ != Phase::kWaits) continue;
      phase_ = Phase::kStopped;
      stopped_by_ = *number;
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      children_.erase(pid);
      for (auto at = connections_.begin(); at != connections_.end(); ++at) {
        if (at->runs != pid) continue;
        (void)at->peer.Send({Kind::kExit, std::to_string(ExitCode(status))});
        connections_.erase(at);
        break;
      }
    }
  }

  // Everything that has come at a connection. One that is not ours, or has been closed, is forgotten; what
  // was started for it goes on, as with ssh.
  void Hear(int fd) {
    auto at = connections_.begin();
    while (at != connections_.end() && at->peer.fd() != fd) ++at;
    if (at == connections_.end()) return;
    while (true) {
      const auto message = at->peer.Receive();
      if (message.ok() && !*message) return;
      if (absl::IsInvalidArgument(message.status()))
        std::fprintf(stderr, "siding-mpirun: %s\n", std::string(message.status().message()).c_str());
      if (message.ok() && Obey(*at, **message)) continue;
      if (&*at == leader_) {
        leader_ = nullptr;
        if (phase_ == Phase::kFollows) phase_ = Phase::kAlone;
      }
      connections_.erase(at);
      return;
    }
  }

  // False: that is not to be said there.
  bool Obey(Connection& connection, const Message& message) {
    const bool is_new = &connection != leader_ && connection.runs < 0;
    if (message.kind == Kind::kFollow && is_new && phase_ == Phase::kWaits) {
      leader_ = &connection;
      phase_ = Phase::kFollows;
      return true;
    }
    if (message.kind == Kind::kEnd && &connection == leader_) {
      phase_ = Phase::kEnds;
      return true;
    }
    if (message.kind != Kind::kRun || !is_new || phase_ != Phase::kFollows) return false;
    // At home, as with ssh: mpirun has the shell read ./.profile, which may be anybody's where the job works.
    const char* const home = std::getenv("HOME");
    const auto child = StartProgram({Shell(), "-c", message.text}, signals_.before(),
                                    home == nullptr || *home == '\0' ? "/" : home);
    if (!child.ok()) {
      std::fprintf(stderr, "siding-mpirun: %s\n", std::string(child.status().message()).c_str());
      return false;
    }
    connection.runs = *child;
    children_.insert(*child);
    return true;
  }

  const Gang& gang_;
  const Signals signals_;
  const UniqueFd listener_;
  Connections connections_;
  Connection* leader_ = nullptr;  // one of them
  std::set<pid_t> children_;
  Phase phase_ = Phase::kWaits;
  int stopped_by_ = 0;  // the signal
};

}  // namespace

absl::StatusOr<int> Follow(const Gang& gang, Duration patience) {
  SIDING_ASSIGN_OR_RETURN(Signals signals, Signals::Take());
  SIDING_ASSIGN_OR_RETURN(UniqueFd listener, Listen(gang.addresses[gang.rank], kPort));
  return Follower(gang, std::move(signals), std::move(listener)).Run(patience);
}

}  // namespace siding::launch
