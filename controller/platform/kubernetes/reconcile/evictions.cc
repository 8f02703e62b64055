#include "controller/platform/kubernetes/reconcile/evictions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/client/discovery.h"
#include "controller/platform/kubernetes/client/errors.h"

namespace siding::kubernetes {
namespace {

// By a budget, or by several: of a pod that has more than one, servers say that by 500.
bool IsKept(const absl::Status& eviction) {
  const std::optional<ApiError> error = ErrorOf(eviction);
  return error &&
         (error->IsBudget() || (error->code == 500 && absl::StrContains(error->message, "DisruptionBudget")));
}

}  // namespace

void Evictions::Keep(const std::vector<Eviction>& unwanted, Time now) {
  // One that is not asked for now may be again in a moment.
  std::erase_if(evicted_, [&](const auto& one) { return now >= one.second + rules_.again; });
  std::erase_if(refused_, [&](const auto& one) {
    return std::none_of(unwanted.begin(), unwanted.end(), [&](const Eviction& eviction) {
      return eviction.uid == one.first && !eviction.only_ask;
    });
  });
}

absl::Status Evictions::Evict(ApiClient& client, const Eviction& eviction, Time now, const Asker& asker) {
  const auto before = evicted_.find(eviction.uid);
  if (!eviction.only_ask && before != evicted_.end() && now < before->second + rules_.again)
    return absl::OkStatus();
  if (absl::Status known = LearnHow(client); !known.ok()) return known;
  if (eviction.only_ask) return Ask(client, eviction, asker);
  if (!asker.is_unwanted()) return absl::OkStatus();
  const absl::Status done =
      client.Evict(eviction.pod, {.uid = eviction.uid},
                   eviction.at_once ? std::optional(Duration(0)) : std::nullopt, version_);
  ends_.log("pod " + ToString(eviction.pod), absl::StrCat("evicted, of job ", eviction.job.value()), done);
  evicted_[eviction.uid] = now;
  if (!IsKept(done)) return done;
  if (!eviction.saved) {
    asker.on_answer(absl::FailedPreconditionError(WordsOf(done)));
  } else if (now >= refused_.emplace(eviction.uid, now).first->second + rules_.ask_budgets) {
    DeleteSaved(client, eviction, done);
  }
  return done;
}

// Whether it could be evicted.
absl::Status Evictions::Ask(ApiClient& client, const Eviction& eviction, const Asker& asker) {
  const absl::Status said = client.MayEvict(eviction.pod, {.uid = eviction.uid}, version_);
  const bool kept = IsKept(said);
  if (!said.ok() && !kept)
    ends_.log("pod " + ToString(eviction.pod), "asked whether it may be evicted", said);
  asker.on_answer(kept ? absl::FailedPreconditionError(WordsOf(said)) : said);
  return said;
}

absl::Status Evictions::LearnHow(ApiClient& client) {
  if (!version_.empty()) return absl::OkStatus();
  const absl::StatusOr<Discovery> found = Discover(client);
  ends_.log("the server", "asked what it has", found.status());
  // Nobody can be evicted, so this is no one pod's error.
  if (!found.ok()) return absl::UnavailableError(found.status().message());
  version_ = found->eviction;
  return absl::OkStatus();
}

// It is frozen for good. While a budget kept it, its job could not go on, nor could others have its node.
void Evictions::DeleteSaved(ApiClient& client, const Eviction& eviction, const absl::Status& why) {
  const absl::Status done = client.Delete(Pods(), eviction.pod, {.uid = eviction.uid}, Duration(0));
  // Its eviction is a problem of its own, said by another name.
  ends_.log("saved pod " + ToString(eviction.pod),
            absl::StrCat("deleted, of job ", eviction.job.value(), ": nothing of it runs"), done);
  if (!done.ok()) return;
  ends_.say({eviction.pod, eviction.uid, true, "SidingDeleted",
             absl::StrCat("the pod is saved and was deleted, for its eviction was refused: ", WordsOf(why)),
             ""});
}

}  // namespace siding::kubernetes
