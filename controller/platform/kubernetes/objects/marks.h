// What siding writes on pods and nodes. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace siding::kubernetes {

// Annotations of pods: the job's number, which all pods of a gang have, and which the pod that comes in the
// place of one that made way inherits.
inline constexpr char kJobMark[] = "job";
// How often the job has been started, this pod included; and a line for people.
inline constexpr char kStartsMark[] = "starts";
inline constexpr char kStatusMark[] = "status";
// A taint of nodes that are kept for a job, whose number is its value; and an annotation that says until
// when, should siding not be there any more.
inline constexpr char kKeptMark[] = "kept-for";
inline constexpr char kKeptUntilMark[] = "kept-until";
// A scheduling gate: the pod waits until siding takes it off. Where the server knows no gates, a pod names
// siding as its scheduler instead.
inline constexpr char kGate[] = "siding.dev/wait";
inline constexpr char kScheduler[] = "siding";

// Without the prefix: users do not write it.
inline bool IsOwnMark(absl::string_view key) {
  return key == kJobMark || key == kStartsMark || key == kStatusMark;
}

}  // namespace siding::kubernetes
