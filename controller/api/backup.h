// The journal for an operator who keeps copies of it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "controller/journal/journal.h"

namespace siding {

// Thread-safe.
class JournalBackup {
 public:
  // The copy is made beside the journal's file, and is gone when it has been sent. The journal must outlive
  // this.
  JournalBackup(Journal& journal, const std::string& file) : journal_(journal), copy_(file + ".backup") {}

  struct Reader {
    std::function<bool()> wants;  // it still does
    // The next bytes of the file, which has `total`. False: it has gone.
    std::function<bool(int64_t total, const std::string& bytes)> take;
  };
  // The journal as it is at one moment; no append waits for more than a moment. One at a time:
  // kResourceExhausted for a second. kCancelled if the reader did not want all of it.
  absl::Status Send(const Reader& reader);

 private:
  Journal& journal_;
  const std::string copy_;
  Mutex one_;
};

}  // namespace siding
