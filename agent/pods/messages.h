// What siding-runc, which makes containers for the container runtime, and the agent say to each other, on a
// socket of packets (common/packets.h). One connection is one container, and after a failure the same again:
//
//     siding-runc                     agent
//     "siding-container"  ------->            it is about to be made
//                         <-------    "siding-start": from an image or from its beginning, or why not at all
//     "siding-made"       ------->            its first process, or why there is none
//
// Pure.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

inline constexpr char kPodsSocket[] = "/run/siding/pods.sock";
inline constexpr size_t kMostPodsMessage = 16 << 10;

// A container as the runtime knows it.
struct ContainerRef {
  std::string root;  // the runtime's folder of all its containers
  std::string id;
  std::string bundle;  // the folder with its config.json
};

struct StartingContainer {
  std::string pod_uid;
  std::string name;  // in its pod
  ContainerRef container;
  Duration patience{};  // who asks waits so long for the answer, in whole seconds; 0: as long as it takes
};
std::string ToText(const StartingContainer& starting);
absl::StatusOr<StartingContainer> ParseStarting(const std::string& text);

// How it is to start.
struct ContainerStart {
  std::string image_folder;  // empty: from its beginning
};
// An error is said to who asked.
std::string ToText(const absl::StatusOr<ContainerStart>& start);
absl::StatusOr<ContainerStart> ParseStart(const std::string& text);

// What became of it: its first process, or why there is none.
std::string ToText(const absl::StatusOr<pid_t>& made);
// kInvalidArgument: it cannot be read. kAborted: the container was not made, with the reason.
absl::StatusOr<pid_t> ParseMade(const std::string& text);

}  // namespace siding
