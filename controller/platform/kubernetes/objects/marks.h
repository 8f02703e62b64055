// What siding writes on pods and nodes. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace siding::kubernetes {

// What users' and siding's own labels, annotations, gates and taints begin with.
inline constexpr char kPrefix[] = "siding.dev/";

// Annotations of pods: the job's number, which all pods of a gang have, and which the pod that comes in the
// place of one that made way inherits.
inline constexpr char kJobMark[] = "job";
// How often the job has been started, this pod included; and a line for people.
inline constexpr char kStartsMark[] = "starts";
inline constexpr char kStatusMark[] = "status";
// What shows that these numbers are siding's (reconcile/seal.h).
inline constexpr char kSealMark[] = "seal";
// The key of a taint of nodes that are kept for a job, whose number is its value.
inline constexpr char kKeptTaint[] = "siding.dev/kept-for";
// A scheduling gate: the pod waits until siding takes it off. Where the server knows no gates, a pod names
// siding as its scheduler instead.
inline constexpr char kGate[] = "siding.dev/wait";
inline constexpr char kScheduler[] = "siding";

// Without the prefix: users do not write it.
inline bool IsOwnMark(absl::string_view key) {
  return key == kJobMark || key == kStartsMark || key == kStatusMark || key == kSealMark;
}

}  // namespace siding::kubernetes
