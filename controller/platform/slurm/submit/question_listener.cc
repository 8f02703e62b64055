#include "controller/platform/slurm/submit/question_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <vector>

#include "common/packets.h"
#include "common/status.h"
#include "common/units.h"
#include "spank/messages.h"
#include "spdlog/spdlog.h"

namespace siding::slurm {
namespace {

using Steady = std::chrono::steady_clock;

// One that has not asked yet.
struct Connection {
  UniqueFd fd;
  uint32_t uid = 0;
  Steady::time_point until;
};

// Rounded up, so that what it waits for has come.
int MillisecondsTo(Steady::time_point then) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - Steady::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

}  // namespace

// In the order they came, so the first one has been silent longest.
class QuestionListener::Connections {
 public:
  explicit Connections(const Limits& limits) : limits_(limits) {}

  void Add(UniqueFd fd, uint32_t uid) {
    const auto is_users = [uid](const Connection& connection) { return connection.uid == uid; };
    const auto of_user = static_cast<size_t>(std::count_if(open_.begin(), open_.end(), is_users));
    if (of_user >= limits_.connections_per_user) {
      open_.erase(std::find_if(open_.begin(), open_.end(), is_users));
    } else if (open_.size() >= limits_.connections) {
      open_.pop_front();
    }
    open_.push_back({std::move(fd), uid, Steady::now() + limits_.silence});
  }
  // For poll(), behind `others`.
  std::vector<pollfd> Watched(std::vector<pollfd> others) const {
    for (const Connection& connection : open_) others.push_back({connection.fd.get(), POLLIN, 0});
    return others;
  }
  int Patience() const { return open_.empty() ? -1 : MillisecondsTo(open_.front().until); }
  // Takes out who has asked; who has gone or was silent for too long is closed. `ready` as of Watched().
  std::vector<UniqueFd> Take(const pollfd* ready) {
    std::vector<UniqueFd> asking;
    std::deque<Connection> silent;
    for (Connection& connection : open_) {
      const short events = (ready++)->revents;
      if ((events & POLLHUP) != 0) continue;  // also one that has asked: it needs no answer any more
      if ((events & POLLIN) != 0)
        asking.push_back(std::move(connection.fd));
      else if (connection.until > Steady::now())
        silent.push_back(std::move(connection));
    }
    open_ = std::move(silent);
    return asking;
  }

 private:
  const Limits limits_;
  std::deque<Connection> open_;
};

// Who has asked lately. An answer is a plan of the whole cluster.
class QuestionListener::Turns {
 public:
  explicit Turns(const Limits& limits) : limits_(limits) {}

  absl::Status Take(uint32_t uid) {
    const Steady::time_point now = Steady::now();
    for (auto user = asked_.begin(); user != asked_.end();) {
      std::erase_if(user->second, [&](Steady::time_point at) { return at <= now - limits_.window; });
      user = user->second.empty() ? asked_.erase(user) : std::next(user);
    }
    std::deque<Steady::time_point>& times = asked_[uid];
    if (times.size() >= limits_.questions_per_user) {
      return absl::ResourceExhaustedError(absl::StrCat("you have asked ", times.size(), " times in ",
                                                       FormatDuration(limits_.window), "; ask again later"));
    }
    times.push_back(now);
    return absl::OkStatus();
  }

 private:
  const Limits limits_;
  std::map<uint32_t, std::deque<Steady::time_point>> asked_;
};

absl::StatusOr<std::unique_ptr<QuestionListener>> QuestionListener::Start(const std::string& path,
                                                                          Answerer& answerer,
                                                                          const Limits& limits) {
  SIDING_ASSIGN_OR_RETURN(UniqueFd socket, ListenForPackets(path, 0666));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoError(errno, "eventfd");
  return std::unique_ptr<QuestionListener>(
      new QuestionListener(path, answerer, limits, std::move(socket), std::move(wake)));
}

absl::StatusOr<std::unique_ptr<QuestionListener>> QuestionListener::Start(const std::string& path,
                                                                          Answerer& answerer) {
  return Start(path, answerer, Limits());
}

QuestionListener::QuestionListener(std::string path, Answerer& answerer, const Limits& limits,
                                   UniqueFd socket, UniqueFd wake)
    : path_(std::move(path)),
      answerer_(answerer),
      limits_(limits),
      socket_(std::move(socket)),
      wake_(std::move(wake)) {
  thread_ = std::thread([this] { Run(); });
}

QuestionListener::~QuestionListener() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) spdlog::error("slurm: cannot wake the listener");
  thread_.join();
  unlink(path_.c_str());
}

void QuestionListener::Run() {
  Connections connections(limits_);
  Turns turns(limits_);
  for (;;) {
    std::vector<pollfd> watched = connections.Watched({{wake_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}});
    if (poll(watched.data(), watched.size(), connections.Patience()) < 0) continue;
    if (watched[0].revents != 0) return;
    for (const UniqueFd& asking : connections.Take(watched.data() + 2)) Serve(asking.get(), turns);
    if (watched[1].revents != 0) Accept(connections);
  }
}

// Many at once: who fills the queue of those who want in keeps others out of it. But not so many that one of
// these could be the first of too many before it was looked at.
void QuestionListener::Accept(Connections& connections) {
  for (size_t i = 0; i < limits_.connections; ++i) {
    UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) return;
    if (const auto uid = UserOfPeer(connection.get()); uid.ok()) connections.Add(std::move(connection), *uid);
  }
}

void QuestionListener::Serve(int connection, Turns& turns) {
  const auto answer = [&]() -> absl::StatusOr<Time> {
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReceivePacket(connection, spank::kMaxMessage));
    SIDING_ASSIGN_OR_RETURN(Question question, ParseQuestion(text));
    SIDING_ASSIGN_OR_RETURN(question.uid, UserOfPeer(connection));
    SIDING_RETURN_IF_ERROR(turns.Take(question.uid));
    return answerer_.WhenWouldItStart(question);
  }();
  SendPacket(connection, AnswerText(answer));
}

}  // namespace siding::slurm
