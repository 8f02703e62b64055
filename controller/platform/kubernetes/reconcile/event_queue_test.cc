#include "controller/platform/kubernetes/reconcile/event_queue.h"

#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/client/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;

absl::Status Answer(int code) { return ToStatus({.code = code, .message = "no"}, "create events"); }

class EventQueueTest : public testing::Test {
 protected:
  void Add(const std::string& space, const std::string& pod, const std::string& text = "text") {
    queue_.Add({{space, pod}, "uid-" + pod, false, "SidingRefused", text, ""});
  }
  // Says what may be said, each with this answer, until there is nothing more.
  std::vector<std::string> Say(const absl::Status& answer = absl::OkStatus()) {
    std::vector<std::string> pods;
    while (std::optional<PodEvent> event = queue_.Take(now_)) {
      pods.push_back(event->pod.name);
      queue_.Done(*std::move(event), answer, now_);
    }
    return pods;
  }

  Time now_ = FromMicros(0);
  EventQueue queue_;
};

TEST_F(EventQueueTest, TheyAreSaidInTheirOrderEachOnce) {
  Add("d", "a");
  Add("d", "b");
  Add("d", "a");
  EXPECT_THAT(Say(), ElementsAre("a", "b"));
  EXPECT_THAT(Say(), ElementsAre());
}
// As of 300 pods that are refused, in a cluster that does not let siding write events.
TEST_F(EventQueueTest, ANamespaceThatTakesNoneIsAskedAfterPausesThatGrow) {
  for (int i = 0; i < 300; ++i) Add("d", absl::StrCat("pod", i));
  size_t asked = 0;
  for (int second = 0; second < 60; ++second) {
    asked += Say(Answer(403)).size();
    now_ += std::chrono::seconds(1);
  }
  EXPECT_LE(asked, 6);
  now_ += Pauses::kLongest;
  EXPECT_EQ(Say().size(), 300);
}
TEST_F(EventQueueTest, OtherNamespacesAreNotInItsWay) {
  Add("d", "a");
  Add("d", "b");
  EXPECT_THAT(Say(Answer(403)), ElementsAre("a"));
  Add("e", "c");
  EXPECT_THAT(Say(), ElementsAre("c"));
}
TEST_F(EventQueueTest, OneThatIsRefusedIsNotInTheWayOfTheOthers) {
  Add("d", "a");
  Add("d", "b");
  EXPECT_THAT(Say(Answer(500)), ElementsAre("a"));
  now_ += Pauses::kFirst;
  EXPECT_THAT(Say(), ElementsAre("b", "a"));
}
TEST_F(EventQueueTest, OneThatIsRefusedAgainAndAgainIsGivenUp) {
  Add("d", "a");
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(Say(Answer(403)), ElementsAre("a"));
    EXPECT_EQ(queue_.lost(), i < 4 ? 0 : 1);
    now_ += Pauses::kLongest;
  }
  EXPECT_THAT(Say(), ElementsAre());
}
TEST_F(EventQueueTest, AServerThatIsAwayIsAskedOnceForAll) {
  Add("d", "a");
  Add("e", "b");
  EXPECT_THAT(Say(absl::UnavailableError("refused")), ElementsAre("a"));
  now_ += Pauses::kFirst;
  EXPECT_THAT(Say(), ElementsAre("a", "b"));
}
TEST_F(EventQueueTest, WhatTheServerWouldNeverTakeIsGivenUp) {
  Add("d", "a");
  Add("d", "b");
  EXPECT_THAT(Say(Answer(422)), ElementsAre("a", "b"));
  EXPECT_EQ(queue_.lost(), 2);
}
TEST_F(EventQueueTest, OfTooManyTheOldestAreGivenUp) {
  for (size_t i = 0; i < EventQueue::kMost + 2; ++i) Add("d", absl::StrCat("pod", i));
  EXPECT_EQ(queue_.lost(), 2);
  EXPECT_EQ(Say().front(), "pod2");
}

}  // namespace
}  // namespace siding::kubernetes
