#include "controller/notify/local_log.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"
#include "common/units.h"
#include "common/utf8.h"

namespace siding {
namespace {

constexpr char kIdentifier[] = "siding-events";
constexpr auto kRoomPatience = std::chrono::seconds(5);
constexpr int kSliceMs = 100;  // between two looks whether it is to stop

// A datagram has an end, and a gang may have thousands of nodes.
constexpr size_t kLongest = 8 << 10;
std::string Cut(std::string text) {
  if (text.size() <= kLongest) return text;
  text.resize(kLongest);
  return ToUtf8(text) + "...";
}

struct Field {
  const char* name;  // of syslog's text; journald's is SIDING_ and the same in capitals
  std::string value;
};

// Without the text, and what says nothing.
std::vector<Field> FieldsOf(const v1::Event& event) {
  std::vector<Field> fields = {{"event", event.kind()},
                               {"seq", absl::StrCat(event.seq())},
                               {"at", FormatTime(FromMicros(event.at_us()))}};
  const auto add = [&](const char* name, int64_t number) {
    if (number != 0) fields.push_back({name, absl::StrCat(number)});
  };
  add("job", event.job());
  add("request", event.request());
  if (event.nodes_size() > 0) fields.push_back({"nodes", Cut(absl::StrJoin(event.nodes(), ","))});
  if (!event.checkpoint().empty()) fields.push_back({"checkpoint", event.checkpoint()});
  if (!event.by().empty()) fields.push_back({"by", event.by()});
  return fields;
}

// Names of jobs and users' words are in there: none may end a field or begin another.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

std::string InQuotes(const std::string& text) {
  std::string inside = OneLine(text);
  std::replace(inside.begin(), inside.end(), '"', '\'');
  std::replace(inside.begin(), inside.end(), '\\', '/');
  return absl::StrCat("\"", inside, "\"");
}

std::string Quoted(const std::string& text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > ' ' && strchr("\"=\\", c) == nullptr;
  });
  return is_plain ? text : InQuotes(text);
}

std::string InCapitals(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

class LocalLog final : public Receiver {
 public:
  LocalLog(EventLogKind kind, std::string socket) : kind_(kind), socket_(std::move(socket)) {}

  Told Tell(const std::vector<v1::Event>& events, std::stop_token stop) override {
    Told told;
    const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    told.why = Connect(fd.get());
    while (told.why.ok() && told.count < events.size()) {
      told.why = Send(fd.get(), events[told.count], stop);
      if (told.why.ok()) ++told.count;
    }
    return told;
  }

 private:
  absl::Status Connect(int fd) const {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (socket_.size() >= sizeof address.sun_path)
      return absl::InvalidArgumentError(socket_ + " is too long for a socket");
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return ErrnoError(errno, "connect to " + socket_);
    return absl::OkStatus();
  }

  // A log has room for some, and then reads them. One that does not is left alone after a while.
  absl::Status Send(int fd, const v1::Event& event, const std::stop_token& stop) const {
    const std::string entry = kind_ == EventLogKind::kJournald ? JournaldEntry(event) : SyslogLine(event);
    const auto until = std::chrono::steady_clock::now() + kRoomPatience;
    while (send(fd, entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno != EAGAIN && errno != EINTR) return ErrnoError(errno, "send to " + socket_);
      if (stop.stop_requested()) return absl::CancelledError("stopped");
      if (std::chrono::steady_clock::now() >= until)
        return absl::UnavailableError(socket_ + " is full, and nobody reads it");
      pollfd room{fd, POLLOUT, 0};
      poll(&room, 1, kSliceMs);
    }
    return absl::OkStatus();
  }

  const EventLogKind kind_;
  const std::string socket_;
};

}  // namespace

std::string JournaldEntry(const v1::Event& event) {
  std::string entry = absl::StrCat("MESSAGE=", event.job() == 0 ? "" : absl::StrCat("job ", event.job(), " "),
                                   event.kind(), ": ", OneLine(Cut(event.text())), "\nPRIORITY=", LOG_INFO,
                                   "\nSYSLOG_IDENTIFIER=", kIdentifier, "\n");
  for (const Field& field : FieldsOf(event))
    absl::StrAppend(&entry, "SIDING_", InCapitals(field.name), "=", OneLine(field.value), "\n");
  return entry;
}

std::string SyslogLine(const v1::Event& event) {
  std::string line = absl::StrCat("<", LOG_DAEMON | LOG_INFO, ">", kIdentifier, ":");
  for (const Field& field : FieldsOf(event))
    absl::StrAppend(&line, " ", field.name, "=", Quoted(field.value));
  return absl::StrCat(line, " text=", InQuotes(Cut(event.text())));
}

std::unique_ptr<Receiver> NewLocalLog(EventLogKind kind, std::string socket) {
  return std::make_unique<LocalLog>(kind, std::move(socket));
}

}  // namespace siding
