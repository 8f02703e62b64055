#include "controller/notify/notifier.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What has happened.
class Events {
 public:
  void Add(const std::string& kind) {
    MutexLock lock(mutex_);
    v1::Event& event = events_.emplace_back();
    event.set_seq(std::ssize(events_));
    event.set_kind(kind);
    changed_.NotifyAll();
  }
  EventSource Source() {
    return {[this](int64_t seq, size_t limit) { return After(seq, limit); }, [this] { return Now(); }};
  }
  void FailNextRead() {
    MutexLock lock(mutex_);
    fails_ = true;
  }
  // An earlier copy, in which the last event is this one.
  void PutBack(int64_t copied_until) {
    MutexLock lock(mutex_);
    events_.resize(static_cast<size_t>(copied_until));
    restored_us_ = 1000 + ++copies_;
    copied_until_ = copied_until;
  }

 private:
  absl::StatusOr<std::vector<v1::Event>> After(int64_t seq, size_t limit) {
    MutexLock lock(mutex_);
    if (std::exchange(fails_, false)) return absl::UnavailableError("the journal is busy");
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(20),
                       [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return std::ssize(events_) > seq; });
    std::vector<v1::Event> after;
    for (int64_t i = seq; i < std::ssize(events_) && after.size() < limit; ++i)
      after.push_back(events_[static_cast<size_t>(i)]);
    return after;
  }
  EventSource::Journal Now() const {
    MutexLock lock(mutex_);
    return {std::ssize(events_), restored_us_, copied_until_};
  }
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<v1::Event> events_ ABSL_GUARDED_BY(mutex_);
  bool fails_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t restored_us_ ABSL_GUARDED_BY(mutex_) = 0, copied_until_ ABSL_GUARDED_BY(mutex_) = 0;
  int copies_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What somebody outside has heard.
class Heard {
 public:
  std::unique_ptr<Receiver> Ear() { return std::make_unique<OneEar>(*this); }
  void FailNext(int times) {
    MutexLock lock(mutex_);
    failures_ = times;
  }
  // No call with more events is taken.
  void TakeAtMost(size_t events) {
    MutexLock lock(mutex_);
    most_ = events;
  }
  std::vector<int64_t> Await(size_t count) const {
    MutexLock lock(mutex_);
    EXPECT_TRUE(
        changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPatience,
                           [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return seqs_.size() >= count; }));
    return seqs_;
  }
  void AwaitFailures(int count) const {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPatience,
                                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return failed_ >= count; }));
  }

 private:
  class OneEar final : public Receiver {
   public:
    explicit OneEar(Heard& heard) : heard_(heard) {}
    Told Tell(const std::vector<v1::Event>& events, std::stop_token) override { return heard_.Hear(events); }

   private:
    Heard& heard_;
  };
  Receiver::Told Hear(const std::vector<v1::Event>& events) {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
    if (failures_ > 0 || events.size() > most_) {
      failures_ = std::max(0, failures_ - 1);
      ++failed_;
      return {0, absl::UnavailableError("it takes none")};
    }
    for (const v1::Event& event : events) seqs_.push_back(event.seq());
    return {events.size(), absl::OkStatus()};
  }
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<int64_t> seqs_ ABSL_GUARDED_BY(mutex_);
  size_t most_ ABSL_GUARDED_BY(mutex_) = 1000;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0, failed_ ABSL_GUARDED_BY(mutex_) = 0;
};

class NotifierTest : public testing::Test {
 protected:
  NotifierTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~NotifierTest() override {
    notifier_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string file() const { return folder_ + "/pager"; }
  void Start(std::set<std::string> kinds = {}, Duration pause = std::chrono::milliseconds(1)) {
    notifier_.reset();
    NotifierOptions options{.name = "pager", .file = file(), .kinds = std::move(kinds)};
    options.open = [this]() -> absl::StatusOr<std::unique_ptr<Receiver>> { return heard_.Ear(); };
    options.pause = [pause](int) { return pause; };
    options.between = Duration(0);
    notifier_ = std::make_unique<Notifier>(events_.Source(), std::move(options));
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(file()); }));
  }

  std::string folder_ = "/tmp/siding-notify-XXXXXX";
  Events events_;
  Heard heard_;
  std::unique_ptr<Notifier> notifier_;
};

TEST_F(NotifierTest, WhoIsNewIsToldOfWhatHappensFromNowOn) {
  events_.Add("submitted");
  Start();
  events_.Add("place");
  EXPECT_THAT(heard_.Await(1), ElementsAre(2));
}

TEST_F(NotifierTest, WhatHappenedWhileNobodyWasThereIsToldAfterwards) {
  Start();
  notifier_.reset();
  for (const char* kind : {"submitted", "place"}) events_.Add(kind);
  Start();
  EXPECT_THAT(heard_.Await(2), ElementsAre(1, 2));
}

TEST_F(NotifierTest, NothingIsToldAgainAfterARestart) {
  Start();
  events_.Add("submitted");
  heard_.Await(1);
  Start();
  events_.Add("place");
  EXPECT_THAT(heard_.Await(2), ElementsAre(1, 2));
}

TEST_F(NotifierTest, WhoIsAwayIsToldWhenItIsBack) {
  heard_.FailNext(3);
  Start();
  for (const char* kind : {"submitted", "place"}) events_.Add(kind);
  EXPECT_THAT(heard_.Await(2), ElementsAre(1, 2));
  EXPECT_EQ(notifier_->counts().failures, 3);
}

TEST_F(NotifierTest, OnlyTheKindsThatAreAskedForAreTold) {
  Start({"place"});
  for (const char* kind : {"submitted", "place", "started", "place"}) events_.Add(kind);
  EXPECT_THAT(heard_.Await(2), ElementsAre(2, 4));
}

TEST_F(NotifierTest, SaysHowFarItIs) {
  heard_.FailNext(1'000'000);
  events_.Add("submitted");
  Start({}, std::chrono::hours(1));
  for (const char* kind : {"place", "started"}) events_.Add(kind);
  heard_.AwaitFailures(1);
  EXPECT_EQ(notifier_->counts().at, 1);
  EXPECT_EQ(notifier_->counts().told, 0);
}

TEST_F(NotifierTest, WhatCannotBeReadIsNotLeftOut) {
  Start();
  events_.Add("submitted");
  heard_.Await(1);
  events_.FailNextRead();
  events_.Add("place");
  EXPECT_THAT(heard_.Await(2), ElementsAre(1, 2));
}

TEST_F(NotifierTest, WhoTakesFewAtOnceHasThemAll) {
  Start();
  notifier_.reset();
  heard_.TakeAtMost(3);
  for (int i = 0; i < 50; ++i) events_.Add("place");
  Start();
  const std::vector<int64_t> heard = heard_.Await(50);
  EXPECT_TRUE(std::is_sorted(heard.begin(), heard.end()));
  EXPECT_EQ(std::set<int64_t>(heard.begin(), heard.end()).size(), 50u);
}

TEST_F(NotifierTest, OneThatCannotBeOpenedIsOpenedLater) {
  int tries = 0;
  NotifierOptions options{.name = "pager", .file = file()};
  options.open = [&]() -> absl::StatusOr<std::unique_ptr<Receiver>> {
    if (++tries < 3) return absl::NotFoundError("no key");
    return heard_.Ear();
  };
  options.pause = [](int) { return std::chrono::milliseconds(1); };
  notifier_ = std::make_unique<Notifier>(events_.Source(), std::move(options));
  events_.Add("submitted");
  EXPECT_THAT(heard_.Await(1), ElementsAre(1));
}

TEST_F(NotifierTest, EndsWhileItWaits) {
  heard_.FailNext(1'000'000);
  Start({}, std::chrono::hours(1));
  events_.Add("submitted");
  heard_.AwaitFailures(1);
  notifier_.reset();  // or the test takes an hour
}

TEST_F(NotifierTest, AfterACopyOfTheJournalWasPutBackItIsToldWhatIsNewInIt) {
  Start();
  for (int i = 0; i < 5; ++i) events_.Add("place");
  heard_.Await(5);
  notifier_.reset();
  events_.PutBack(2);
  for (const char* kind : {"restored", "place", "place", "place", "place"}) events_.Add(kind);
  Start();
  EXPECT_THAT(heard_.Await(10), ElementsAre(1, 2, 3, 4, 5, 3, 4, 5, 6, 7));
}

TEST_F(NotifierTest, AFileThatCannotBeUnderstoodIsKept) {
  ASSERT_TRUE(WriteFileAtomically(file(), "").ok());
  Start();
  events_.Add("submitted");
  EXPECT_TRUE(Eventually([&] { return notifier_->counts().failures > 2; }));
  EXPECT_EQ(ReadFile(file()).value(), "");
  ASSERT_TRUE(WriteFileAtomically(file(), "0 0\n").ok());
  EXPECT_THAT(heard_.Await(1), ElementsAre(1));
}

TEST(PauseBeforeTelling, DoublesUpToFiveMinutes) {
  using std::chrono::seconds;
  EXPECT_EQ(PauseBeforeTelling(1), seconds(1));
  EXPECT_EQ(PauseBeforeTelling(2), seconds(2));
  EXPECT_EQ(PauseBeforeTelling(5), seconds(16));
  EXPECT_EQ(PauseBeforeTelling(1000), seconds(300));
}

}  // namespace
}  // namespace siding
