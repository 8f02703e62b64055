// How long messages may be, in bytes: what each end sends at most, and what the other takes. A message that
// is longer than what the other end takes breaks a stream, and would again each time it is sent.
#pragma once

#include <climits>
#include <cstddef>

namespace siding {

inline constexpr size_t kMiB = 1024 * 1024;

// Users' and agents' messages, as far as gRPC takes them. There is one limit for both: it is not known whose
// connection it is before its first call.
inline constexpr size_t kMostToController = 4 * kMiB;
// A user's request. Checked once it is there: gRPC has one limit for all of a server's calls.
inline constexpr size_t kMostFromUser = 2 * kMiB + kMiB / 4;
// An agent's message. See agent/link/fit.h.
inline constexpr size_t kMostFromAgent = 3 * kMiB;
// Notes of one task that are told and heard.
inline constexpr int kMostNotes = 100;

inline constexpr size_t kMostToAgent = 16 * kMiB;
// An order. It has a spec of at most kMostSpec (controller/wire/spec_limits.h), or lists of names.
inline constexpr size_t kMostOrder = 8 * kMiB;

// Numbers of a task that a cluster manager has started, as far as the controller takes them. Users have them
// in their hands: an agent that reported more would not be heard at all.
inline constexpr int kMostIncarnations = 1'000'000'000;  // starts of one job
inline constexpr int kMostTasks = 65536;                 // of one job

// Of a job or step that keeps its connections: their addresses are one variable of its environment.
inline constexpr int kMostKeptRanks = 4096;

// sidingctl takes lists of jobs and plans of any length: it trusts the controller.
inline constexpr size_t kMostToUser = INT_MAX;

// What gRPC and protobuf add, with room to spare.
inline constexpr size_t kAround = 64 * 1024;
static_assert(kMostFromUser + kAround <= kMostToController);
static_assert(kMostFromAgent + kAround <= kMostToController);
static_assert(kMostOrder + kAround <= kMostToAgent);
static_assert(kMostToAgent <= INT_MAX && kMostToController <= INT_MAX, "gRPC has them as int");

}  // namespace siding
