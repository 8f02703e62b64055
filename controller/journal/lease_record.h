// Who may act on a journal, as it is written beside it: docs/design/journal-format.md. A value, and its text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace siding {

struct LeaseRecord {
  int64_t epoch = 0;      // of the controller that has the journal; 0: none has ever had it
  int64_t beat = 0;       // counts up as long as it lives and can write
  bool released = false;  // it has given the journal back
  bool shared = false;    // it writes in the way that lets controllers on other hosts take over
  std::string host;       // for people
  std::string boot;       // of that host's kernel: the same one means the same machine
  int pid = 0;
  std::string address;  // where it serves: its HOST:PORT, or its unix socket
  std::string page;     // where its page is, as its own machine's browsers write it; empty: it has none

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

// One line of JSON and back. Empty text: there is no holder; kDataLoss if it is something else altogether.
std::string EncodeLease(const LeaseRecord& record);
absl::StatusOr<LeaseRecord> DecodeLease(const std::string& text);

// "pid 4711 on head1 (head1:7433)".
std::string HolderOf(const LeaseRecord& record);

}  // namespace siding
