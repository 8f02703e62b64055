// Lists of jobs, each asked for at most once in a moment: of one list everybody who asks is told what is
// different since he was told of it last, and the whole the first time. With many open pages, and ten
// thousand jobs of which one has changed, the others are then neither written again nor sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"
#include "page/server/changing_list.h"
#include "page/server/list_memory.h"
#include "page/server/snapshots.h"
#include "siding/v1/api.pb.h"

namespace siding::page {

// Thread-safe.
class Lists {
 public:
  // `clock` and `snapshots` must outlive it. `memory`: where there is no more of it, a list is not kept, and
  // whoever asks is told the whole.
  Lists(const Clock& clock, Snapshots& snapshots, std::shared_ptr<ListMemory> memory)
      : clock_(clock), snapshots_(snapshots), memory_(std::move(memory)) {}

  // v1::JobChanges of the list `key` since that version of it (empty: the whole). `ask` says what is in it
  // now; it is called if that is not known from a moment ago, and others wait meanwhile. Errors are not kept.
  // The tag is the version's name, for an answer to one address with the same version is the same.
  absl::StatusOr<Snapshot> Of(const std::string& key, const std::string& since,
                              const std::function<absl::StatusOr<v1::ListJobsResponse>()>& ask);

  // Those for which nobody has asked for long take no memory. To be called again and again.
  void Forget();

  // So much more time than it takes to ask for a list goes by until it is asked for again: what all open
  // pages cost together is no more than a fortieth of a core, where a list does not take very long. But
  // nobody waits longer than kWait for news because of that.
  static constexpr int kShare = 39;
  static constexpr Duration kWait = std::chrono::seconds(4);
  // So many lists are kept, and none for which nobody has asked for so long: each is the whole of it, of each
  // reader's.
  static constexpr size_t kMost = 4;
  static constexpr Duration kForgotten = std::chrono::seconds(30);

 private:
  struct Kept {
    explicit Kept(std::shared_ptr<ListMemory> of) : memory(std::move(of)) {}
    ChangingList list;
    ListMemory::Share memory;
    Time since{};  // nothing in it is older
    Time until{};  // it is good
    Time asked{};
  };

  void ForgetAt(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Kept& Find(const std::string& key, Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  Snapshots& snapshots_;
  const std::shared_ptr<ListMemory> memory_;
  Mutex mutex_;
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::page
