// How the verbs of siding-store speak to who has called it.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "common/mutex.h"
#include "store/store.h"

namespace siding::store {

struct Terminal {
  std::ostream& out;
  std::ostream& err;
  const std::function<bool()>& stop;  // as of RunTool()
};

// One line on stderr, which is written over a few times a second and goes in the end. Thread-safe.
class ProgressLine {
 public:
  // `wanted`: else it shows nothing.
  ProgressLine(std::ostream& err, bool wanted) : err_(err), wanted_(wanted) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Asks for the text only if it is time for another one.
  void Show(const std::function<std::string()>& text);

 private:
  std::ostream& err_;
  const bool wanted_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point shown_ ABSL_GUARDED_BY(mutex_) = std::chrono::steady_clock::now();
  size_t width_ ABSL_GUARDED_BY(mutex_) = 0;  // of the longest that was shown
};

// Whether the folder that ImageStore::Hold() gave is still that of the image; or still nothing is there.
bool IsStillThere(const ImageStore& store, const ImageKey& key, const UniqueFd& held);

// Reads an image back, past what memory remembers of it, and shows how far it is. kCancelled if it was
// stopped; else as ImageStore::Verify(), but none is called damaged for being deleted or replaced meanwhile.
absl::StatusOr<Manifest> VerifyShown(const ImageStore& store, const ImageKey& key,
                                     const VerifyOptions& options, bool progress, const Terminal& terminal);

// Why it ends, on stderr.
void Complain(const Terminal& terminal, const std::string& why);

// A line on stdout. Names of files may have any characters: none of them speaks to the terminal.
void Say(const Terminal& terminal, const std::string& line);

}  // namespace siding::store
