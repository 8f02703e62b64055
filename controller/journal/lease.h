// The right to act on a journal: at any time one controller has it, whose epoch is the newest.
//
// The epoch is in the journal's database, and every transaction that appends checks within itself that it is
// still its own controller's; taking over raises it, in a transaction as well. So of two controllers the
// older one cannot record anything, and what cannot be recorded is not done. That is all that correctness
// rests on.
//
// That the holder lives is said in a file beside the database (lease_file.h), once a second, by a thread of
// its own. docs/admin/high-availability.md tells of it at length.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "controller/journal/database.h"
#include "controller/journal/lease_file.h"
#include "controller/journal/lease_watch.h"

namespace siding {

struct LeaseOptions {
  std::string journal;  // the database's path
  bool shared = false;  // controllers on other hosts may take over
  std::string address;  // where this one serves, for people
  std::string page;     // and where its page is, for the page of one that stands by; empty: it has none
  // A holder that cannot renew its lease ends its process, so that what depends on it goes to the one that
  // takes over. Only where another controller stands by.
  bool end_if_stuck = false;
};

// First it looks on; Claim() makes it the holder's. Looking is for one thread, the rest is thread-safe.
class Lease {
 public:
  static absl::StatusOr<std::unique_ptr<Lease>> Open(LeaseOptions options);
  // Gives it back, so that the next one need not wait.
  ~Lease();

  LeaseWatch::Verdict Look();
  // As it was seen last.
  const LeaseRecord& seen() const { return watch_.seen(); }
  // A holder on this machine that is silent although it lives may have been stopped in the middle of a write,
  // with the database locked. Ends it; false: there is none that could be ended.
  bool EndSilentHolder();

  // After a look that said kFree, on an open connection to the database. kFailedPrecondition if another
  // controller has been faster, kUnavailable if the database is locked.
  absl::Status Claim(Database& database);
  int64_t epoch() const { return epoch_; }
  bool shared() const { return options_.shared; }
  // Whether a controller that was seen is on this machine.
  bool IsHere(const LeaseRecord& record) const { return record.boot == boot_; }

  // Within a transaction that writes: kAborted if another controller has taken over. Also says that this one
  // lives, if it is time: many appends in a row leave the lease's own thread no turn at the database.
  absl::Status Check(Database& database);
  // For as long as what it returns lives, that this controller lives is said without a turn at the database,
  // which is to be kept locked for long by the holder itself: a file is rewritten, for instance.
  [[nodiscard]] std::shared_ptr<void> WithoutTurns();
  // Asks the database, under its lock. kAborted as above, then and for ever.
  absl::Status Confirm();
  // To the next one, while this process still lives: it records nothing from here on, and standing() is
  // `why`, a kAborted. On an error it is kept.
  absl::Status Release(const std::string& why);
  // Whether it is lost, as far as is known. Blocks on nothing.
  absl::Status standing() const;

 private:
  Lease(LeaseOptions options, LeaseFile file, std::string boot);
  absl::Status Renew(bool released);
  absl::Status Say(bool released);
  absl::Status SayIfItIsOurs();
  Duration Silence() const;
  absl::Status Lost() const;
  void Beat();
  void Report(const absl::Status& renewal) const;
  void Watchdog();

  const LeaseOptions options_;
  LeaseFile file_;
  const std::string boot_;
  LeaseWatch watch_;
  int64_t epoch_ = 0;  // ours, once it is claimed

  Mutex saying_;                                                 // held while the file is written
  LeaseRecord record_ ABSL_GUARDED_BY(saying_);                  // ours, once it is claimed
  Mutex renewing_;                                               // taken before the others
  std::optional<Database> database_ ABSL_GUARDED_BY(renewing_);  // the lease's own connection

  std::atomic<bool> without_turns_ = false;

  mutable Mutex mutex_;  // never held while something is read or written
  CondVar wake_;
  absl::Status standing_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point renewed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread beat_, watchdog_;
};

}  // namespace siding
