#include "page/server/pages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "page/server/answers.h"

namespace siding::page {

HttpResponse Pages::Answer(const HttpRequest& request) {
  if (sessions_ == nullptr) return strangers_.Answer(request);
  if (const auto foreign = RefuseForeign(request, frame_->names))
    return Refuse(foreign->status, foreign->why);
  const auto session = sessions_->Of(request);
  if (!session.ok()) return Refuse(session.status());
  if (!*session) return strangers_.Answer(request);
  const auto reader = ReaderOf(**session);
  return reader.ok() ? (*reader)->page.Answer(request) : Refuse(reader.status());
}

absl::StatusOr<std::shared_ptr<Pages::Reader>> Pages::ReaderOf(const Session& session) {
  MutexLock lock(mutex_);
  auto found = known_.find(session.of);
  if (found == known_.end()) {
    if (ended_) return absl::UnavailableError("this server is stopping");
    if (known_.size() >= kMost)
      return absl::ResourceExhaustedError(absl::StrCat("there are ", kMost, " readers of the page already"));
    found = known_.emplace(session.of, Known{std::make_shared<Reader>(session, frame_), {}}).first;
  }
  found->second.asked = frame_->clock.Now();
  return found->second.reader;
}

std::vector<std::shared_ptr<Pages::Reader>> Pages::Current() {
  std::vector<std::shared_ptr<Reader>> current;
  const Time now = frame_->clock.Now();
  MutexLock lock(mutex_);
  std::erase_if(known_, [&](const auto& entry) {
    const Known& known = entry.second;
    return known.reader.use_count() == 1 && now - known.asked >= kForgetAfter &&
           !known.reader->page.IsFollowed();
  });
  for (const auto& [of, known] : known_) current.push_back(known.reader);
  return current;
}

absl::Status Pages::Turn(Duration wait) {
  const auto current = Current();
  const bool behind = std::any_of(current.begin(), current.end(),
                                  [](const auto& reader) { return reader->page.IsSomebodyBehind(); });
  // All sources tell of the same cluster: what wakes one wakes all.
  absl::Status turned = strangers_.Turn(behind ? Duration(0) : wait);
  for (const auto& reader : current) reader->page.Turn(Duration(0)).IgnoreError();
  return turned;
}

void Pages::End() {
  strangers_.End();
  MutexLock lock(mutex_);
  ended_ = true;
  for (const auto& [of, known] : known_) known.reader->page.End();
}

size_t Pages::readers() const {
  MutexLock lock(mutex_);
  return known_.size();
}

}  // namespace siding::page
