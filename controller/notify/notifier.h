// Tells one receiver of all events, at least once each and in their order, from where it was when the last
// controller ended. Nothing is kept for a receiver that is away: its events are in the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/notify/counts.h"
#include "controller/notify/receiver.h"

namespace siding {

// Where events come from. Thread-safe.
struct EventSource {
  // Those after `seq`, at most `limit`; waits a moment for the first one.
  std::function<absl::StatusOr<std::vector<v1::Event>>(int64_t seq, size_t limit)> after;
  struct Journal {
    int64_t newest = 0;  // the last event's number
    // When a copy of it was put back, and the number of the copy's last event; 0: it never was.
    int64_t restored_us = 0, copied_until = 0;
  };
  std::function<Journal()> journal;
};

// After so many failures in a row.
Duration PauseBeforeTelling(int failures);

struct NotifierOptions {
  std::string name;
  std::string file;             // where it is kept how far it has been told
  std::set<std::string> kinds;  // empty: all
  // Files that it names are read then. Again after each failure: they may have been changed.
  std::function<absl::StatusOr<std::unique_ptr<Receiver>>()> open;
  std::function<Duration(int failures)> pause = PauseBeforeTelling;
  Duration between = std::chrono::seconds(1);  // two calls, unless there are more events than one takes
};

class Notifier {
 public:
  // Begins at once. Who has never been told anything is told of what happens from now on.
  Notifier(EventSource source, NotifierOptions options);
  // Ends soon, also in the middle of a call.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // The destructor then waits for less. Thread-safe.
  void RequestStop();
  ToldCounts counts() const;

 private:
  void Run(const std::stop_token& stop);
  // What is known of it: kNotFound if nothing is. Other errors may pass.
  absl::StatusOr<int64_t> WhereItWas() const;
  absl::Status Keep(int64_t seq) const;
  // How many are done with: told, or not to be told. Fewer than all only when stopped.
  absl::Status TellSome(const std::vector<v1::Event>& events, const std::stop_token& stop);
  void Failed(const absl::Status& why, const std::stop_token& stop);
  void Wait(Duration time, const std::stop_token& stop);
  void SetAt(int64_t seq);
  int64_t at() const;

  const EventSource source_;
  const NotifierOptions options_;
  const EventSource::Journal begun_;  // what the journal was then
  std::unique_ptr<Receiver> receiver_;
  int failures_ = 0;   // in a row
  size_t most_;        // events of a call: fewer after each failure, in case one was too large
  int64_t kept_ = -1;  // in the file
  mutable Mutex mutex_;
  CondVar stopped_;
  ToldCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of them
};

}  // namespace siding
