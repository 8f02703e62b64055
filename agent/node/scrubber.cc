#include "agent/node/scrubber.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

using Steady = std::chrono::steady_clock;

// The clock may be set while we wait, so it is looked at again and again.
constexpr auto kLook = std::chrono::minutes(1);

}  // namespace

Duration PauseFor(Bytes done, Duration taken, Bytes rate) {
  if (rate.value <= 0) return Duration(0);
  const double allowed = static_cast<double>(done.value) / static_cast<double>(rate.value);
  return std::max(Duration(0), FromSeconds(allowed) - taken);
}

Scrubber::Scrubber(ScrubOptions options, std::string file, std::vector<Tier> tiers, const Clock& clock)
    : options_(options), file_(std::move(file)), tiers_(std::move(tiers)), clock_(clock) {}

Scrubber::~Scrubber() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Scrubber::Start() {
  if (options_.interval <= Duration(0)) return;
  // Who has never read anything back begins one interval from now.
  if (!ReadFile(file_).ok()) RememberRound();
  thread_ = std::thread([this] { Run(); });
}

Time Scrubber::NextRound() const {
  const auto text = ReadFile(file_);
  int64_t last = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &last)) return clock_.Now();
  return FromMicros(last) + options_.interval;
}

void Scrubber::RememberRound() {
  WriteFileAtomically(file_, std::to_string(ToMicros(clock_.Now()))).IgnoreError();
}

void Scrubber::Run() {
  while (!Stopping()) {
    Duration left = NextRound() - clock_.Now();
    if (left > options_.interval) {
      // The last round is in the future: the clock has been set back since, by years maybe.
      RememberRound();
      left = options_.interval;
    }
    if (left > Duration(0)) {
      MutexLock lock(mutex_);
      stop_.WaitFor(mutex_, std::min<Duration>(left, kLook),
                    [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
      continue;
    }
    // Before the round: one that never comes to its end is not to begin again at once.
    RememberRound();
    Round();
  }
}

bool Scrubber::Stopping() const {
  MutexLock lock(mutex_);
  return stopping_;
}

void Scrubber::Round() {
  const int64_t before = read_;
  for (const Tier& tier : tiers_) {
    const ImageStore* const store = tier.store();
    if (store == nullptr) continue;
    const auto keys = store->List();
    if (!keys.ok()) spdlog::warn("scrub: {}", std::string(keys.status().message()));
    if (!keys.ok()) continue;
    for (const ImageKey& key : *keys) {
      if (Stopping()) return;
      ReadBack(tier, *store, key);
    }
  }
  spdlog::info("scrub: {} read back, {} images are damaged", FormatBytes(Bytes{read_ - before}),
               Damaged().size());
}

void Scrubber::ReadBack(const Tier& tier, const ImageStore& store, const ImageKey& key) {
  const auto manifest = store.Read(key);
  if (manifest.ok() && !tier.is_ours(*manifest)) return;
  absl::Status status = Verify(store, key);
  // One that was deleted or replaced meanwhile looks damaged once, but not twice.
  if (absl::IsDataLoss(status)) status = Verify(store, key);
  MutexLock lock(mutex_);
  if (!absl::IsDataLoss(status)) {
    damaged_.erase({tier.tier, key});
    return;
  }
  spdlog::error("scrub: {}", std::string(status.message()));
  damaged_[{tier.tier, key}] = std::string(status.message());
}

absl::Status Scrubber::Verify(const ImageStore& store, const ImageKey& key) {
  const auto begun = Steady::now();
  int64_t done_before = 0;
  const auto pace = [&](Bytes done) {
    read_ += done.value - done_before;
    done_before = done.value;
    const auto taken = std::chrono::duration_cast<Duration>(Steady::now() - begun);
    MutexLock lock(mutex_);
    return !stop_.WaitFor(mutex_, PauseFor(done, taken, options_.rate),
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
  };
  return store.Verify(key, {.progress = pace, .from_disk = true}).status();
}

std::vector<v1::DamagedImage> Scrubber::Damaged() const {
  std::vector<v1::DamagedImage> images;
  MutexLock lock(mutex_);
  for (const auto& [where, problem] : damaged_) {
    const auto& [tier, key] = where;
    v1::DamagedImage& image = images.emplace_back();
    image.set_checkpoint(key.checkpoint.value());
    image.set_tier(tier);
    image.set_rank(key.rank);
    image.set_problem(problem);
  }
  return images;
}

void Scrubber::Forget(v1::Tier tier, const ImageKey& key) {
  MutexLock lock(mutex_);
  damaged_.erase({tier, key});
}

void Scrubber::ForgetDeleted(v1::Tier tier) {
  const auto found =
      std::find_if(tiers_.begin(), tiers_.end(), [&](const Tier& t) { return t.tier == tier; });
  const ImageStore* const store = found == tiers_.end() ? nullptr : found->store();
  if (store == nullptr) return;
  std::vector<ImageKey> keys;
  {
    MutexLock lock(mutex_);
    for (const auto& [where, problem] : damaged_) {
      if (where.first == tier) keys.push_back(where.second);
    }
  }
  for (const ImageKey& key : keys) {
    if (!absl::IsNotFound(store->Path(key).status())) continue;
    MutexLock lock(mutex_);
    damaged_.erase({tier, key});
  }
}

}  // namespace siding
