#include "agent/pods/container_starts.h"

#include <atomic>
#include <thread>

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

StartingContainer Of(const std::string& uid) { return {uid, "main", {"/run/runc", "c1", "/bundle"}}; }
bool Always() { return true; }

// Says what the test wants it to say, and counts how often it was asked.
class Owner final : public ContainerOwner {
 public:
  absl::StatusOr<ContainerStart> OnStarting(const StartingContainer& starting) override {
    MutexLock lock(mutex_);
    ++asked_;
    last_ = starting;
    changed_.NotifyAll();
    return answer_;
  }
  void OnMade(const StartingContainer& starting, const absl::StatusOr<pid_t>& made) override {
    MutexLock lock(mutex_);
    last_ = starting;
    made_ = made;
  }
  void Say(absl::StatusOr<ContainerStart> answer) {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }
  void AwaitAsked(int times) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience,
                                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_ >= times; }));
  }
  StartingContainer last() {
    MutexLock lock(mutex_);
    return last_;
  }
  absl::StatusOr<pid_t> made() {
    MutexLock lock(mutex_);
    return made_;
  }
  int asked() {
    MutexLock lock(mutex_);
    return asked_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  absl::StatusOr<ContainerStart> answer_ ABSL_GUARDED_BY(mutex_) = ContainerStart{"/image"};
  absl::StatusOr<pid_t> made_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("nothing was said");
  StartingContainer last_ ABSL_GUARDED_BY(mutex_);
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One who makes a container, on a thread of its own.
class Asker {
 public:
  Asker(ContainerStarts& starts, const std::string& uid, Duration patience = kPatience)
      : thread_([this, &starts, uid, patience] {
          answer_ = starts.Ask(Of(uid), patience, [this] {
            looked_ = true;
            return !gone_;
          });
        }) {}
  ~Asker() {
    if (thread_.joinable()) thread_.join();
  }
  void AwaitLook() const {
    EXPECT_TRUE(Eventually([this] { return looked_.load(); })) << "the container to wait for its task";
  }
  void Go() { gone_ = true; }
  absl::StatusOr<ContainerStart> Answer() {
    thread_.join();
    return answer_;
  }

 private:
  std::atomic<bool> looked_{false}, gone_{false};
  absl::StatusOr<ContainerStart> answer_ = absl::UnknownError("not asked");
  std::thread thread_;
};

TEST(ContainerStarts, ATaskThatIsThereAnswersAtOnce) {
  ContainerStarts starts;
  Owner owner;
  starts.Offer("a", owner);
  const auto answer = starts.Ask(Of("a"), kPatience, Always);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->image_folder, "/image");
  EXPECT_EQ(owner.last().container.id, "c1");
}

TEST(ContainerStarts, WhoWaitsForAPodThatIsBeingDeletedIsRefused) {
  ContainerStarts starts;
  Asker asker(starts, "a"), other(starts, "b");
  asker.AwaitLook();
  other.AwaitLook();
  starts.Refuse("a");
  EXPECT_TRUE(absl::IsFailedPrecondition(asker.Answer().status()));
  starts.Let("b");
  EXPECT_TRUE(other.Answer().ok());
}

TEST(ContainerStarts, WhatWasRefusedBeforeIsNotRemembered) {
  ContainerStarts starts;
  Owner owner;
  starts.Refuse("a");
  Asker asker(starts, "a");
  asker.AwaitLook();
  starts.Offer("a", owner);
  EXPECT_TRUE(asker.Answer().ok());
}

TEST(ContainerStarts, AContainerThatComesFirstWaitsForItsTask) {
  ContainerStarts starts;
  Owner owner;
  Asker asker(starts, "a");
  asker.AwaitLook();
  starts.Offer("a", owner);
  EXPECT_TRUE(asker.Answer().ok());
}

TEST(ContainerStarts, AnotherPodsTaskIsNotAsked) {
  ContainerStarts starts;
  Owner owner;
  starts.Offer("b", owner);
  EXPECT_TRUE(absl::IsUnavailable(starts.Ask(Of("a"), Duration(0), Always).status()));
  EXPECT_EQ(owner.asked(), 0);
}

TEST(ContainerStarts, ATaskThatDoesNotKnowYetIsAskedAgainAfterARing) {
  ContainerStarts starts;
  Owner owner;
  owner.Say(absl::UnavailableError("its image is being verified"));
  starts.Offer("a", owner);
  Asker asker(starts, "a");
  owner.AwaitAsked(1);
  owner.Say(ContainerStart{"/other"});
  starts.Ring();
  EXPECT_EQ(asker.Answer()->image_folder, "/other");
}

TEST(ContainerStarts, ARefusalIsTheAnswer) {
  ContainerStarts starts;
  Owner owner;
  owner.Say(absl::FailedPreconditionError("the image is damaged"));
  starts.Offer("a", owner);
  EXPECT_EQ(starts.Ask(Of("a"), kPatience, Always).status(),
            absl::FailedPreconditionError("the image is damaged"));
}

TEST(ContainerStarts, WithoutATaskThePatienceEndsWithWhatIsMissing) {
  ContainerStarts starts;
  const auto answer = starts.Ask(Of("a"), Duration(0), Always);
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("siding's controller has not said"));
}

TEST(ContainerStarts, WithATaskThePatienceEndsWithWhatItSaidLast) {
  ContainerStarts starts;
  Owner owner;
  owner.Say(absl::UnavailableError("its image is being verified"));
  starts.Offer("a", owner);
  EXPECT_EQ(starts.Ask(Of("a"), Duration(0), Always).status(),
            absl::UnavailableError("its image is being verified"));
}

TEST(ContainerStarts, WhoHasGoneIsNotAnswered) {
  ContainerStarts starts;
  Owner owner;
  starts.Offer("a", owner);
  EXPECT_TRUE(absl::IsCancelled(starts.Ask(Of("a"), kPatience, [] { return false; }).status()));
  EXPECT_EQ(owner.asked(), 0);
}

TEST(ContainerStarts, WhoGoesWhileHeWaitsIsNoticed) {
  ContainerStarts starts;
  Asker asker(starts, "a");
  asker.AwaitLook();
  asker.Go();
  EXPECT_TRUE(absl::IsCancelled(asker.Answer().status()));
}

TEST(ContainerStarts, ATaskThatIsWithdrawnIsNotAskedAgain) {
  ContainerStarts starts;
  Asker asker(starts, "a");
  {
    Owner owner;
    owner.Say(absl::UnavailableError("not yet"));
    starts.Offer("a", owner);
    owner.AwaitAsked(1);
    starts.Withdraw("a", owner);
    const int asked = owner.asked();
    starts.Ring();
    EXPECT_EQ(owner.asked(), asked);
  }
  starts.Ring();  // the owner is no more
  asker.Go();
  EXPECT_TRUE(absl::IsCancelled(asker.Answer().status()));
}

TEST(ContainerStarts, ATaskThatIsWithdrawnWhileItIsAskedLivesUntilItHasAnswered) {
  // The owner blocks in its answer until it is let go; Withdraw() may not return before that.
  class Slow final : public ContainerOwner {
   public:
    absl::StatusOr<ContainerStart> OnStarting(const StartingContainer&) override {
      in_ = true;
      EXPECT_TRUE(Eventually([this] { return let_go_.load(); })) << "the test to let the owner answer";
      answered_ = true;
      return ContainerStart{};
    }
    void OnMade(const StartingContainer&, const absl::StatusOr<pid_t>&) override {}
    std::atomic<bool> in_{false}, let_go_{false}, answered_{false};
  };
  ContainerStarts starts;
  Slow owner;
  starts.Offer("a", owner);
  Asker asker(starts, "a");
  EXPECT_TRUE(Eventually([&] { return owner.in_.load(); })) << "the owner to be asked";
  std::thread withdraws([&] {
    starts.Withdraw("a", owner);
    EXPECT_TRUE(owner.answered_);
  });
  owner.let_go_ = true;
  withdraws.join();
  EXPECT_TRUE(asker.Answer().ok());
}

TEST(ContainerStarts, TheNextTaskOfAPodIsNotWithdrawnByTheOneBefore) {
  ContainerStarts starts;
  Owner first, second;
  starts.Offer("a", first);
  starts.Offer("a", second);
  starts.Withdraw("a", first);
  EXPECT_TRUE(starts.Ask(Of("a"), Duration(0), Always).ok());
  EXPECT_EQ(second.asked(), 1);
}

TEST(ContainerStarts, WhatBecameOfItIsTold) {
  ContainerStarts starts;
  Owner owner;
  starts.Offer("a", owner);
  starts.Tell(Of("a"), 4711);
  EXPECT_EQ(owner.made().value_or(0), 4711);
}

TEST(ContainerStarts, OfAPodThatIsNoTaskNothingIsTold) {
  ContainerStarts starts;
  Owner owner;
  starts.Offer("b", owner);
  starts.Tell(Of("a"), 4711);
  EXPECT_FALSE(owner.made().ok());
}

}  // namespace
}  // namespace siding
