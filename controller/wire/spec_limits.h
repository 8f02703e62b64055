// How large what a submitter writes may be, and which characters names may have.
//
// Everything in a job's spec is kept in the journal and in memory, is shown to people, and goes to the kernel
// in the end, which has limits of its own: a spec beyond them is refused here, and not on a node.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "common/message_limits.h"
#include "siding/v1/types.pb.h"

namespace siding {

inline constexpr size_t kLongestName = 256;             // of a job, of a label, and a label's value
inline constexpr size_t kLongestPath = 4095;            // PATH_MAX, without the zero
inline constexpr size_t kLongestArgument = 128 * 1024;  // of execve(2), with its zero
inline constexpr size_t kMostArguments = 16 * 1024;     // of a command; variables of an environment
inline constexpr size_t kMostText = 1024 * 1024;        // command, environment and restart command together
// A whole spec as a message. An order that its agent cannot receive would break the stream each time it is
// sent. Journals from before this limit have longer specs.
inline constexpr size_t kMostSpec = 2 * kMiB;
static_assert(kMostSpec + kAround <= kMostFromUser);
static_assert(kMostToController + kAround <= kMostOrder);
inline constexpr int kMostLabels = 64;

// kInvalidArgument, naming the field and what was expected there.
absl::Status CheckLimits(const v1::JobSpec& spec);

absl::Status BadField(const std::string& field, const std::string& expected);

}  // namespace siding
