// Cuts what comes in pieces into lines. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {

class LineSplitter {
 public:
  LineSplitter(const LineReader& reader, size_t longest) : reader_(reader), longest_(longest) {}

  // kResourceExhausted: a line is longer than allowed. kCancelled: the reader wants no more. Empty lines are
  // left out; what has no end yet is kept for the next piece.
  absl::Status Add(absl::string_view piece) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      const absl::string_view part = piece.substr(0, end);
      if (begun_.size() + part.size() > longest_) {
        return absl::ResourceExhaustedError(
            absl::StrCat("a line of the answer is longer than ", longest_, " bytes"));
      }
      begun_.append(part.data(), part.size());
      if (end == absl::string_view::npos) break;
      if (!begun_.empty() && !reader_(begun_)) return absl::CancelledError("enough");
      begun_.clear();
      piece.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  }

 private:
  const LineReader& reader_;
  const size_t longest_;
  std::string begun_;
};

}  // namespace siding::kubernetes
