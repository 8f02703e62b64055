#include "controller/platform/kubernetes/watch/informer_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "controller/platform/kubernetes/client/errors.h"

namespace siding::kubernetes {
namespace {

// Whether `version` tells nothing new to one who knows `known`. Versions are numbers on all servers that
// there are; of others only the same one is known.
bool IsOld(const std::string& version, const std::string& known) {
  uint64_t one = 0;
  uint64_t other = 0;
  if (!absl::SimpleAtoi(version, &one) || !absl::SimpleAtoi(known, &other)) return version == known;
  return one <= other;
}

// Whether the version at which the watch broke is still good after this, so that nothing was missed.
bool MayResume(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
      return true;
    case absl::StatusCode::kResourceExhausted:
      return ErrorOf(status).has_value();  // else a line was too long, and would be again
    default:
      return false;
  }
}

}  // namespace

InformerState::InformerState(InformerRules rules)
    : rules_(rules), backoff_(rules.first, rules.most, rules.seed), listing_(Listing()) {}

InformerState::Step InformerState::Next() const {
  if (!listing_) return {.list = false, .version = version_, .not_before = not_before_};
  return {.list = true,
          .token = listing_->token,
          .limit = listing_->whole ? 0 : rules_.page,
          .not_before = not_before_};
}

void InformerState::OnPage(ListPage page) {
  health_ = absl::OkStatus();
  for (Object& object : page.items) {
    ObjectName name = object.name;
    listing_->objects.insert_or_assign(std::move(name), std::move(object));
  }
  listing_->token = page.next;
  if (!page.next.empty()) return;
  version_ = page.version;
  Adopt(std::move(listing_->objects));
  listing_.reset();
  synced_ = true;
}

void InformerState::Adopt(Objects objects) {
  for (const auto& [name, old] : objects_) {
    const auto now = objects.find(name);
    if (now == objects.end() || now->second.uid != old.uid) changes_.push_back({old, {}});
  }
  for (const auto& [name, now] : objects) {
    const auto old = objects_.find(name);
    if (old == objects_.end() || old->second.uid != now.uid) {
      changes_.push_back({{}, now});
    } else if (old->second.version != now.version) {
      changes_.push_back({old->second, now});
    }
  }
  objects_ = std::move(objects);
}

void InformerState::OnListFailed(const absl::Status& error, Time now) {
  const bool expired = absl::IsOutOfRange(error) && !listing_->token.empty();
  // The first time the pages are given up at once; a server that says it again is given a pause.
  if (!expired || listing_->whole) {
    health_ = error;
    not_before_ = now + backoff_.Next();
  }
  if (expired || absl::IsOutOfRange(error) || absl::IsInvalidArgument(error)) {
    ListAgain();
    listing_->whole = expired;
  }
}

void InformerState::OnWatchBegun(Time now) {
  heard_ = false;
  not_before_ = now + rules_.least_apart;
}

void InformerState::OnEvent(WatchEvent event) {
  heard_ = true;
  health_ = absl::OkStatus();
  backoff_.Reset();
  Object& object = event.object;
  const std::string known = version_;
  if (!IsOld(object.version, known)) version_ = object.version;
  if (event.kind == WatchEvent::Kind::kBookmark) return;
  const auto held = objects_.find(object.name);
  if (event.kind == WatchEvent::Kind::kDeleted) {
    // A deletion that is older than what is held was of another of this name.
    if (held == objects_.end()) return;
    if (held->second.uid != object.uid && IsOld(object.version, held->second.version)) return;
    changes_.push_back({std::move(held->second), {}});
    objects_.erase(held);
    return;
  }
  if (held == objects_.end()) {
    if (IsOld(object.version, known)) return;  // told twice, and deleted since
    changes_.push_back({{}, object});
    objects_.emplace(object.name, std::move(object));
    return;
  }
  if (IsOld(object.version, held->second.version)) return;
  if (held->second.uid == object.uid) {
    changes_.push_back({std::move(held->second), object});
  } else {
    changes_.push_back({std::move(held->second), {}});
    changes_.push_back({{}, object});
  }
  held->second = std::move(object);
}

void InformerState::OnWatchEnded(const absl::Status& status, Time now) {
  if (!MayResume(status)) ListAgain();
  if (status.ok()) {
    health_ = absl::OkStatus();
    if (heard_) backoff_.Reset();
    return;
  }
  // A watch that has gone well breaks now and then: no reason to wait.
  if (heard_ && (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status))) return;
  if (!absl::IsOutOfRange(status)) health_ = status;  // versions expire, and a list helps
  not_before_ = std::max(not_before_, now + backoff_.Next());
}

void InformerState::ListAgain() { listing_ = Listing(); }

std::vector<ObjectChange> InformerState::TakeChanges() { return std::exchange(changes_, {}); }

}  // namespace siding::kubernetes
