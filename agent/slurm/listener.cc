#include "agent/slurm/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <optional>
#include <vector>

#include "agent/slurm/registration.h"
#include "common/mutex.h"
#include "common/packets.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// Slurm starts at most so many tasks of a step on a node, unless its administrator says otherwise.
constexpr size_t kMostSilent = 1024;

// A shim's connection. Two threads write: the listener says whether the task is
// accepted, and the task's own thread afterwards when its orders are ready. The shim sees the end of the
// connection if the agent dies before that.
class Connection {
 public:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}

  void Accept(const std::string& text) {
    MutexLock lock(mutex_);
    Send(text);
    accepted_ = true;
    if (orders_) Send(*orders_);
  }
  void Order(const std::string& text) {
    MutexLock lock(mutex_);
    if (accepted_)
      Send(text);
    else
      orders_ = text;
  }
  void Refuse(const std::string& text) { Send(text); }

 private:
  void Send(const std::string& text) { SendPacket(fd_.get(), text); }

  const UniqueFd fd_;
  Mutex mutex_;
  bool accepted_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> orders_ ABSL_GUARDED_BY(mutex_);  // came before the acceptance
};

bool IsOurUser(int connection) {
  const auto user = UserOfPeer(connection);
  return user.ok() && *user == geteuid();
}

absl::StatusOr<Registered> Receive(int connection) {
  const auto text = ReceivePacket(connection, spank::kMaxMessage);
  if (!text.ok()) return Annotate(text.status(), "no registration");
  return ParseRegistration(*text);
}

// None if the node has no such tier. One that cannot be read now may have the image in which the job's work
// is.
absl::StatusOr<std::vector<ImageKey>> ImagesOf(TaskHost& host, v1::Tier tier) {
  auto images = host.Images(tier);
  if (absl::IsFailedPrecondition(images.status())) return std::vector<ImageKey>{};
  return images;
}

// What the task continues from; nothing: it starts from the beginning.
absl::StatusOr<std::optional<FoundCheckpoint>> FindCheckpoint(TaskHost& host,
                                                              const spank::Registration& registration) {
  if (registration.restarts == 0) return std::nullopt;
  SIDING_ASSIGN_OR_RETURN(const auto local, ImagesOf(host, v1::LOCAL));
  SIDING_ASSIGN_OR_RETURN(const auto shared, ImagesOf(host, v1::SHARED));
  return ChooseCheckpoint(local, shared, registration);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmListener>> SlurmListener::Start(const std::string& path, TaskHost& host) {
  SIDING_ASSIGN_OR_RETURN(UniqueFd socket, ListenForPackets(path, 0600));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoError(errno, "eventfd");
  return std::unique_ptr<SlurmListener>(new SlurmListener(path, host, std::move(socket), std::move(wake)));
}

SlurmListener::SlurmListener(std::string path, TaskHost& host, UniqueFd socket, UniqueFd wake)
    : path_(std::move(path)), host_(host), socket_(std::move(socket)), wake_(std::move(wake)) {
  thread_ = std::thread([this] { Run(); });
}

SlurmListener::~SlurmListener() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) spdlog::error("slurm: cannot wake the listener");
  thread_.join();
  unlink(path_.c_str());
}

void SlurmListener::Run() {
  std::deque<UniqueFd> silent;  // in the order they came
  for (;;) {
    std::vector<pollfd> ready = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    for (const UniqueFd& connection : silent) ready.push_back({connection.get(), POLLIN, 0});
    if (poll(ready.data(), ready.size(), -1) < 0) continue;
    if (ready[1].revents != 0) return;
    for (size_t i = 2; i < ready.size(); ++i) {
      UniqueFd connection = std::move(silent.front());
      silent.pop_front();
      if ((ready[i].revents & POLLHUP) != 0) continue;  // its task has gone, whatever it said
      if ((ready[i].revents & POLLIN) != 0)
        Serve(std::move(connection));
      else
        silent.push_back(std::move(connection));
    }
    if (ready[0].revents == 0) continue;
    UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool no_room = !connection.valid() && (errno == EMFILE || errno == ENFILE);
    if (connection.valid() && IsOurUser(connection.get())) silent.push_back(std::move(connection));
    if (silent.size() > kMostSilent || (no_room && !silent.empty())) silent.pop_front();
  }
}

void SlurmListener::Serve(UniqueFd fd) {
  const auto received = Receive(fd.get());
  const auto connection = std::make_shared<Connection>(std::move(fd));
  const auto accept = [&]() -> absl::Status {
    if (!received.ok()) return received.status();
    const spank::Registration& registration = received->task;
    SIDING_ASSIGN_OR_RETURN(const auto checkpoint, FindCheckpoint(host_, registration));
    SIDING_ASSIGN_OR_RETURN(const v1::ToAgent start, StartOf(registration, checkpoint));
    SIDING_ASSIGN_OR_RETURN(const std::string folder,
                            host_.ExpectShim(start, received->gpus, [connection](const absl::Status& status) {
                              connection->Order(OrdersText(status));
                            }));
    connection->Accept(AcceptedText(folder));
    spdlog::info("slurm: job {} step {} task {}, restart {}: {}", registration.job, registration.step,
                 registration.task, registration.restarts,
                 checkpoint ? "from " + checkpoint->id.value() : "from the beginning");
    return absl::OkStatus();
  };
  if (const absl::Status status = accept(); !status.ok()) {
    spdlog::warn("slurm: a task is refused: {}", std::string(status.message()));
    connection->Refuse(RefusedText(status));
  }
}

}  // namespace siding
