#include "store/tool/terminal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/directory.h"
#include "common/logging.h"
#include "store/layout.h"

namespace siding::store {
namespace {

constexpr int kMostLooks = 5;
constexpr auto kShowInterval = std::chrono::milliseconds(200);

}  // namespace

ProgressLine::~ProgressLine() {
  MutexLock lock(mutex_);
  if (width_ > 0) err_ << "\r" << std::string(width_, ' ') << "\r" << std::flush;
}

void ProgressLine::Show(const std::function<std::string()>& text) {
  if (!wanted_) return;
  MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < kShowInterval) return;
  shown_ = now;
  std::string line = text();
  width_ = std::max(width_, line.size());
  line.resize(width_, ' ');
  err_ << "\r" << line << std::flush;
}

absl::StatusOr<Manifest> VerifyShown(const ImageStore& store, const ImageKey& key,
                                     const VerifyOptions& options, bool progress, const Terminal& terminal) {
  ProgressLine line(terminal.err, progress);
  VerifyOptions shown = options;
  shown.progress = [&](Bytes done) {
    line.Show([&] { return absl::StrCat(Describe(key), ": ", FormatBytes(done), " read"); });
    return !terminal.stop();
  };
  // What is deleted or replaced while it is read looks damaged, and so it is looked at again.
  for (int i = 0;; ++i) {
    const auto held = store.Hold(key);
    auto manifest = store.Verify(key, shown);
    if (manifest.ok() || absl::IsCancelled(manifest.status()) || absl::IsNotFound(manifest.status()) ||
        !held.ok() || IsStillThere(store, key, *held) || i == kMostLooks)
      return manifest;
  }
}

bool IsStillThere(const ImageStore& store, const ImageKey& key, const UniqueFd& held) {
  const auto path = store.Path(key);
  return absl::IsNotFound(path.status()) ? !held.valid() : !path.ok() || IsNamed(held.get(), *path);
}

void Complain(const Terminal& terminal, const std::string& why) {
  terminal.err << "siding-store: " << OneLogLine(why) << "\n";
}

void Say(const Terminal& terminal, const std::string& line) {
  terminal.out << OneLogLine(line) << "\n" << std::flush;
}

}  // namespace siding::store
