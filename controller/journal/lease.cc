#include "controller/journal/lease.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/since.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr Duration kBeatEvery = std::chrono::seconds(1);
constexpr Duration kOftenEnough = kBeatEvery / 2;
// Well within kLeaseLasts: by then another one may have taken over.
constexpr Duration kStuckAfter = std::chrono::seconds(4);
// What else may hold the database's lock holds it for milliseconds.
constexpr int kBusyMs = 2000;
constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

Time SteadyNow() { return FromMicros(Since(std::chrono::steady_clock::time_point()).count()); }

absl::StatusOr<int64_t> EpochIn(Database& database) {
  return database.Number("SELECT value FROM meta WHERE key='epoch'", 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lease>> Lease::Open(LeaseOptions options) {
  SIDING_ASSIGN_OR_RETURN(LeaseFile file, LeaseFile::Open(options.journal + ".lease"));
  SIDING_ASSIGN_OR_RETURN(std::string boot, ReadFile(kBootId));
  boot = std::string(absl::StripSuffix(boot, "\n"));
  return std::unique_ptr<Lease>(new Lease(std::move(options), std::move(file), std::move(boot)));
}

Lease::Lease(LeaseOptions options, LeaseFile file, std::string boot)
    : options_(std::move(options)), file_(std::move(file)), boot_(std::move(boot)), watch_(boot_) {}

Lease::~Lease() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  if (beat_.joinable()) beat_.join();
  if (watchdog_.joinable()) watchdog_.join();
  if (database_) Renew(/*released=*/true).IgnoreError();  // if it is lost, it is not ours to give
}

LeaseWatch::Verdict Lease::Look() {
  auto record = file_.Read();
  // What says nothing is waited out like a holder that says nothing.
  if (!record.ok()) record = LeaseRecord{.epoch = 1, .shared = true, .host = "?"};
  return watch_.Look(*record, file_.IsLocked(record->epoch), SteadyNow());
}

bool Lease::EndSilentHolder() {
  const LeaseRecord& holder = seen();
  if (holder.released || holder.boot != boot_ || holder.pid <= 0 || holder.pid == getpid()) return false;
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, holder.pid, 0)));
  // Numbers of processes are used again; this one has our lease open.
  if (!process.valid() || !file_.IsOpenIn(holder.pid)) return false;
  if (syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0) return false;
  spdlog::warn("{} is silent and keeps the journal locked: it has been killed", HolderOf(holder));
  return true;
}

absl::Status Lease::Claim(Database& database) {
  if (epoch_ != 0) return Confirm();  // an earlier attempt went as far as this
  SIDING_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  const auto now = file_.Read();
  if (now.ok() && *now != seen()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.journal, " is in use by another sidingd: ", HolderOf(*now)));
  }
  SIDING_ASSIGN_OR_RETURN(const int64_t last, EpochIn(database));
  // Not simply the next: what agents have seen must be older also if the journal is a new one, or a backup.
  const int64_t epoch = std::max({ToMicros(SystemClock().Now()) / 1'000'000, last + 1, seen().epoch + 1});
  SIDING_RETURN_IF_ERROR(file_.Lock(epoch));
  const LeaseRecord record{
      epoch, 0, false, options_.shared, HostName(), boot_, getpid(), options_.address, options_.page};
  absl::Status done = database.SetMeta("epoch", epoch);
  // Before the transaction ends: other controllers see at once that it is held.
  if (done.ok()) done = file_.Write(record);
  if (done.ok()) done = transaction.Commit();
  if (done.ok()) {
    auto opened = Database::Open(options_.journal, Database::Mode::kReadWrite, kBusyMs);
    done = opened.status();
    if (opened.ok()) {
      MutexLock lock(renewing_);
      database_ = *std::move(opened);
    }
  }
  if (!done.ok()) {
    file_.Unlock(epoch);
    return done;
  }
  epoch_ = epoch;
  {
    MutexLock lock(saying_);
    record_ = record;
  }
  {
    MutexLock lock(mutex_);
    renewed_ = std::chrono::steady_clock::now();
  }
  beat_ = std::thread([this] { Beat(); });
  if (options_.end_if_stuck) watchdog_ = std::thread([this] { Watchdog(); });
  return absl::OkStatus();
}

absl::Status Lease::Check(Database& database) {
  SIDING_RETURN_IF_ERROR(standing());
  SIDING_ASSIGN_OR_RETURN(const int64_t epoch, EpochIn(database));
  if (epoch != epoch_) return Lost();
  if (Silence() > kOftenEnough) Say(/*released=*/false).IgnoreError();  // the lease's thread will complain
  return absl::OkStatus();
}

// With the database's lock held: no other controller takes over meanwhile.
absl::Status Lease::Say(bool released) {
  {
    MutexLock lock(saying_);
    ++record_.beat;
    record_.released = released;
    SIDING_RETURN_IF_ERROR(file_.Write(record_));
  }
  MutexLock lock(mutex_);
  renewed_ = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

std::shared_ptr<void> Lease::WithoutTurns() {
  without_turns_ = true;
  return {nullptr, [this](void*) { without_turns_ = false; }};
}

// The journal itself is not asked, so another one's word that has been written stands.
absl::Status Lease::SayIfItIsOurs() {
  const auto now = file_.Read();
  return now.ok() && now->epoch != epoch_ ? Lost() : Say(/*released=*/false);
}

Duration Lease::Silence() const {
  MutexLock lock(mutex_);
  return Since(renewed_);
}

absl::Status Lease::Lost() const {
  const auto now = file_.Read();
  return absl::AbortedError(absl::StrCat("fenced: ", now.ok() ? HolderOf(*now) : "another controller",
                                         " has taken over ", options_.journal,
                                         "; this one must not act any more"));
}

absl::Status Lease::Renew(bool released) {
  MutexLock lock(renewing_);
  SIDING_ASSIGN_OR_RETURN(const Transaction transaction, Transaction::Begin(*database_));
  SIDING_RETURN_IF_ERROR(Check(*database_));
  return released ? Say(released) : absl::OkStatus();
}

absl::Status Lease::Release(const std::string& why) {
  MutexLock renewing(renewing_);
  // Within it no other can append, and one that begins afterwards checks after we have written it.
  SIDING_ASSIGN_OR_RETURN(const Transaction transaction, Transaction::Begin(*database_));
  SIDING_RETURN_IF_ERROR(Check(*database_));
  SIDING_RETURN_IF_ERROR(Say(/*released=*/true));
  MutexLock lock(mutex_);
  standing_ = absl::AbortedError(why);
  return absl::OkStatus();
}

absl::Status Lease::Confirm() {
  SIDING_RETURN_IF_ERROR(standing());
  const absl::Status renewed = Renew(/*released=*/false);
  MutexLock lock(mutex_);
  if (absl::IsAborted(renewed) && standing_.ok()) standing_ = renewed;
  return renewed;
}

absl::Status Lease::standing() const {
  MutexLock lock(mutex_);
  return standing_;
}

void Lease::Beat() {
  absl::Status last;
  MutexLock lock(mutex_);
  while (!wake_.WaitFor(mutex_, kBeatEvery,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
    lock.Unlock();
    absl::Status now;
    if (Silence() > kOftenEnough) now = without_turns_ ? SayIfItIsOurs() : Confirm();
    if (absl::IsUnavailable(now) && Silence() <= kBeatEvery) now = absl::OkStatus();  // by an append
    if (now.code() != last.code()) Report(now);
    last = now;
    lock.Lock();
    if (!standing_.ok()) return;
  }
}

void Lease::Report(const absl::Status& renewal) const {
  if (renewal.ok()) {
    spdlog::info("the lease on {} is renewed again", options_.journal);
  } else {
    spdlog::error("the lease on {} is not renewed: {}", options_.journal, std::string(renewal.message()));
  }
}

// Two looks in a row: a process that was stopped and resumed has not hung, and renews before the second.
void Lease::Watchdog() {
  int late = 0;
  MutexLock lock(mutex_);
  while (!wake_.WaitFor(mutex_, kBeatEvery,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
    late = Since(renewed_) > kStuckAfter && standing_.ok() ? late + 1 : 0;
    if (late < 2) continue;
    spdlog::critical(
        "the lease on {} could not be renewed for {}: this process ends, for another controller "
        "may have taken over",
        options_.journal, FormatDuration(Since(renewed_)));
    _exit(1);
  }
}

}  // namespace siding
