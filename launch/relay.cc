#include "launch/relay.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/status.h"
#include "launch/connect.h"
#include "launch/message.h"
#include "launch/process.h"

namespace siding::launch {
namespace {

constexpr Duration kPatience = std::chrono::minutes(1);  // the task is there: rank 0 has spoken to it

}  // namespace

absl::StatusOr<int> Relay(const Gang& gang, const std::vector<std::string>& words) {
  const auto& all = gang.addresses;
  if (words[0] == all[gang.rank] || std::find(all.begin(), all.end(), words[0]) == all.end())
    return absl::InvalidArgumentError(
        absl::StrCat(words[0], " is no other node of this job: expected one of SIDING_GANG_ADDRS (",
                     absl::StrJoin(all, ","), ")"));
  signal(SIGPIPE, SIG_IGN);
  SIDING_ASSIGN_OR_RETURN(UniqueFd socket,
                          Connect(all[gang.rank], words[0], kPort, kPatience, [] { return false; }));
  Peer peer(std::move(socket));
  SIDING_RETURN_IF_ERROR(peer.Send({Kind::kRun, absl::StrJoin(words.begin() + 1, words.end(), " ")}));
  while (true) {
    AwaitInput({peer.fd()});
    const auto message = peer.Receive();
    if (!message.ok()) return Annotate(message.status(), words[0]);
    if (*message && (*message)->kind != Kind::kExit)
      return absl::InvalidArgumentError(words[0] + " has said what is not expected");
    if (*message) return NumberIn(**message);
  }
}

}  // namespace siding::launch
