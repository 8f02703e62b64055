#include "agent/network/netlink.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

// The kernel's answers are of 32 KiB at most.
constexpr size_t kAnswer = 64 * 1024;
// How often a dump is begun again that something has changed while it was made.
constexpr int kDumps = 20;

struct Answers {
  std::vector<std::string> bodies;
  bool changed = false;  // while they were put together
};

void Pad(std::string& bytes) { bytes.resize(NLMSG_ALIGN(bytes.size())); }

// Adds the messages of one datagram. True: the last one has come.
absl::StatusOr<bool> AddAnswers(absl::string_view datagram, const std::string& what, Answers& answers) {
  while (datagram.size() >= NLMSG_HDRLEN) {
    nlmsghdr head = {};
    std::memcpy(&head, datagram.data(), sizeof head);
    if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > datagram.size()) break;
    const absl::string_view body = datagram.substr(NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN);
    if ((head.nlmsg_flags & NLM_F_DUMP_INTR) != 0) answers.changed = true;
    if (head.nlmsg_type == NLMSG_ERROR || head.nlmsg_type == NLMSG_DONE) {
      int error = 0;  // negative; a done dump can have none
      if (body.size() >= sizeof error) std::memcpy(&error, body.data(), sizeof error);
      if (error < 0) return ErrnoError(-error, what);
      return true;
    }
    answers.bodies.emplace_back(body);
    if ((head.nlmsg_flags & NLM_F_MULTI) == 0) return true;
    datagram.remove_prefix(std::min<size_t>(NLMSG_ALIGN(head.nlmsg_len), datagram.size()));
  }
  if (!datagram.empty()) return absl::InternalError(what + ": an answer of the kernel that is cut off");
  return false;
}

// By a socket of its own, so that what is left of an earlier request is nobody's.
absl::StatusOr<Answers> Exchange(int protocol, const std::string& request, const std::string& what) {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket.valid()) return ErrnoError(errno, what + ": netlink");
  if (send(socket.get(), request.data(), request.size(), 0) < 0) return ErrnoError(errno, what);
  Answers answers;
  std::string datagram(kAnswer, '\0');
  while (true) {
    const ssize_t size = recv(socket.get(), datagram.data(), datagram.size(), MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return ErrnoError(errno, what);
    if (static_cast<size_t>(size) > datagram.size()) return ErrnoError(EMSGSIZE, what);
    SIDING_ASSIGN_OR_RETURN(
        const bool all,
        AddAnswers(absl::string_view(datagram.data(), static_cast<size_t>(size)), what, answers));
    if (all) return answers;
  }
}

}  // namespace

std::string Attribute(int type, const std::string& value) {
  const nlattr head = {static_cast<uint16_t>(NLA_HDRLEN + value.size()), static_cast<uint16_t>(type)};
  std::string bytes = BytesOf(head) + value;
  Pad(bytes);
  return bytes;
}

std::string BigEndianAttribute(int type, uint32_t value) { return NumberAttribute(type, htonl(value)); }

std::string TextAttribute(int type, absl::string_view value) {
  return Attribute(type, std::string(value) + '\0');
}

std::string NestAttribute(int type, const std::string& attributes) {
  return Attribute(type | NLA_F_NESTED, attributes);
}

std::string NetlinkMessage(int type, int flags, const std::string& header, const std::string& attributes) {
  std::string body = header;
  Pad(body);
  body += attributes;
  nlmsghdr head = {};
  head.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(body.size()));
  head.nlmsg_type = static_cast<uint16_t>(type);
  head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  return BytesOf(head) + body;
}

NetlinkAttributes ParseAttributes(absl::string_view bytes) {
  NetlinkAttributes attributes;
  while (bytes.size() >= NLA_HDRLEN) {
    nlattr head = {};
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.nla_len < NLA_HDRLEN || head.nla_len > bytes.size()) break;
    attributes[head.nla_type & NLA_TYPE_MASK] = bytes.substr(NLA_HDRLEN, head.nla_len - NLA_HDRLEN);
    bytes.remove_prefix(std::min<size_t>(NLA_ALIGN(head.nla_len), bytes.size()));
  }
  return attributes;
}

absl::Status TellKernel(int protocol, const std::string& request, const std::string& what) {
  return Exchange(protocol, request, what).status();
}

absl::StatusOr<std::vector<std::string>> AskKernel(int protocol, const std::string& request,
                                                   const std::string& what) {
  for (int dump = 0; dump < kDumps; ++dump) {
    SIDING_ASSIGN_OR_RETURN(Answers answers, Exchange(protocol, request, what));
    if (!answers.changed) return std::move(answers.bodies);
  }
  return absl::UnavailableError(what + ": it changes all the time");
}

}  // namespace siding
