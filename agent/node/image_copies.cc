#include "agent/node/image_copies.h"

#include <chrono>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/status.h"
#include "store/parents.h"

namespace siding {
namespace {

// A piece of an image is written within that, where the file system answers at all.
constexpr Duration kEndPatience = std::chrono::seconds(2);

absl::Status CalledOff() { return absl::CancelledError("the copy was called off"); }

// Over a network the files that are shared with an earlier image are read, and compared, for one image in so
// many: what is damaged must not be in all that come.
constexpr unsigned kReadEvery = 4;
unsigned Draw() { return std::random_device()() % kReadEvery; }

// A pause is said again each minute.
constexpr Duration kPauses = std::chrono::minutes(2);

// Of two of one job.
bool IsOlder(const CheckpointId& a, const CheckpointId& b) {
  const size_t a_size = a.value().size(), b_size = b.value().size();
  return a_size != b_size ? a_size < b_size : a.value() < b.value();
}

ImageKey KeyOf(const v1::CopyCheckpoint& order) { return {CheckpointId(order.checkpoint()), order.rank()}; }

}  // namespace

ImageCopies::~ImageCopies() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
}

void ImageCopies::Order(const v1::CopyCheckpoint& order, Done done) {
  const ImageKey key = KeyOf(order);
  {
    MutexLock lock(mutex_);
    const auto [copy, is_new] = copies_.try_emplace(key);
    copy->second.order = order;
    copy->second.done = std::move(done);
    const auto now = std::chrono::steady_clock::now();
    copy->second.pauses_until = order.pause() ? now + kPauses : now;
    CallOffOthers(key);
    if (is_new) queue_.Add([this, key] { Run(key); });
  }
  changed_.NotifyAll();
}

absl::Status ImageCopies::CallOff(const ImageKey& key) {
  MutexLock lock(mutex_);
  const auto copy = copies_.find(key);
  if (copy == copies_.end()) return absl::OkStatus();
  copy->second.called_off = true;
  changed_.NotifyAll();
  // Its turn may be long in coming.
  if (!copy->second.begun) {
    const Done done = End(key);
    lock.Unlock();
    done(CalledOff());
    return absl::OkStatus();
  }
  const bool ended = changed_.WaitFor(
      mutex_, kEndPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !copies_.contains(key); });
  if (ended) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("image ", key.checkpoint.value(), " rank ", key.rank,
                                             " is being copied, which has not ended yet"));
}

std::vector<v1::ImageCopy> ImageCopies::UnderWay() const {
  MutexLock lock(mutex_);
  std::vector<v1::ImageCopy> all;
  for (const auto& [key, copy] : copies_) {
    v1::ImageCopy& one = all.emplace_back();
    one.set_checkpoint(key.checkpoint.value());
    one.set_rank(key.rank);
    one.set_bytes_done(copy.copied.value);
    one.set_bytes_total(copy.total.value);
  }
  return all;
}

void ImageCopies::CallOffOthers(const ImageKey& key) {
  const std::string job = store::JobPartOf(key.checkpoint);
  for (auto& [other, copy] : copies_) {
    const bool is_earlier = IsOlder(other.checkpoint, key.checkpoint) && other.rank == key.rank;
    copy.called_off |= is_earlier && store::JobPartOf(other.checkpoint) == job;
  }
}

ImageCopies::Copy* ImageCopies::AwaitTurn(const ImageKey& key) {
  for (;;) {
    const auto copy = copies_.find(key);
    if (stopping_ || copy == copies_.end()) return nullptr;
    const auto until = copy->second.pauses_until;
    if (copy->second.called_off || std::chrono::steady_clock::now() >= until) return &copy->second;
    changed_.WaitUntil(mutex_, until);
  }
}

void ImageCopies::Run(const ImageKey& key) {
  v1::CopyCheckpoint order;
  bool called_off = false;
  {
    MutexLock lock(mutex_);
    Copy* const copy = AwaitTurn(key);
    if (copy == nullptr) return;
    copy->begun = true;
    called_off = copy->called_off;
    order = copy->order;
  }
  const absl::Status made = called_off ? CalledOff() : Make(key, order);
  Done done;
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    done = End(key);
  }
  changed_.NotifyAll();
  done(made);
}

ImageCopies::Done ImageCopies::End(const ImageKey& key) {
  const auto copy = copies_.find(key);
  Done done = std::move(copy->second.done);
  copies_.erase(copy);
  return done;
}

absl::Status ImageCopies::Make(const ImageKey& key, const v1::CopyCheckpoint& order) {
  SIDING_ASSIGN_OR_RETURN(const ImageStore* const local, store_of_(v1::LOCAL));
  SIDING_ASSIGN_OR_RETURN(ImageStore* const shared, store_of_(v1::SHARED));
  CopyOptions options{.digest = order.image_digest(), .reads_bases = Draw() == 0};
  // Without it all of the image is copied.
  std::optional<Manifest> base;
  if (!order.base().empty()) {
    auto read = shared->Read({CheckpointId(order.base()), key.rank});
    if (read.ok()) base = *std::move(read);
  }
  if (base) options.bases = {&*base};
  options.progress = [&](Bytes copied, Bytes all) { return Note(key, copied, all); };
  SIDING_ASSIGN_OR_RETURN(const Copied made, shared->CopyFrom(*local, key, options));
  FaultHere<"agent.copied: an image is in the shared tier as well, and nobody knows">();
  written_ += made.written.value;
  return absl::OkStatus();
}

bool ImageCopies::Note(const ImageKey& key, Bytes copied, Bytes total) {
  MutexLock lock(mutex_);
  copies_.at(key).copied = copied;
  copies_.at(key).total = total;
  const Copy* const copy = AwaitTurn(key);
  return copy != nullptr && !copy->called_off;
}

}  // namespace siding
