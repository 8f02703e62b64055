// The journal for an operator who keeps copies of it.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "absl/status/status.h"

namespace siding {

// Thread-safe.
class JournalBackup {
 public:
  // The journal's file. The copy is made beside it, and is gone when it has been sent.
  explicit JournalBackup(std::string journal) : journal_(std::move(journal)) {}

  struct Reader {
    std::function<bool()> wants;  // it still does
    // The next bytes of the file, which has `total`. False: it has gone.
    std::function<bool(int64_t total, const std::string& bytes)> take;
  };
  // The journal as it is at one moment; appends are not kept waiting. One at a time: kResourceExhausted for a
  // second. kCancelled if the reader did not want all of it.
  absl::Status Send(const Reader& reader);

 private:
  const std::string journal_;
  std::mutex one_;
};

}  // namespace siding
