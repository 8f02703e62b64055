// Helpers for absl::Status: context added on the way up, and early return.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace siding {

// "context: message", same code. OK stays OK.
inline absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

// The same error with another message: also what it says of itself beside that (its payloads).
inline absl::Status Reworded(const absl::Status& status, const std::string& message) {
  absl::Status reworded(status.code(), message);
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { reworded.SetPayload(url, payload); });
  return reworded;
}

// An error from errno, named by what was being done: ErrnoError(errno, "open /x").
inline absl::Status ErrnoError(int error, const std::string& what) {
  return absl::ErrnoToStatus(error, what);
}

}  // namespace siding

#define SIDING_CONCAT_INNER(a, b) a##b
#define SIDING_CONCAT(a, b) SIDING_CONCAT_INNER(a, b)

#define SIDING_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status siding_status = (expr); !siding_status.ok()) return siding_status; \
  } while (false)

#define SIDING_ASSIGN_OR_RETURN(lhs, expr) \
  SIDING_ASSIGN_OR_RETURN_IMPL(SIDING_CONCAT(siding_or_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): names and a declaration
#define SIDING_ASSIGN_OR_RETURN_IMPL(var, lhs, expr) \
  auto var = (expr);                                 \
  if (!var.ok()) return var.status();                \
  lhs = *std::move(var)
// NOLINTEND(bugprone-macro-parentheses)
