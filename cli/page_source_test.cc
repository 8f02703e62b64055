// What the page asks of a controller over gRPC.
#include "cli/page_source.h"

#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/tls/endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Has the events up to the newest; those who follow wait for the next one.
class Followed final : public v1::Siding::Service {
 public:
  grpc::Status Site(grpc::ServerContext* context, const v1::Empty*, v1::SiteInfo* site) override {
    MutexLock lock(mutex_);
    while (hangs_ && !stopping_ && !context->IsCancelled())
      changed_.WaitFor(mutex_, std::chrono::milliseconds(10));
    if (stands_by_) {
      context->AddTrailingMetadata(kStandsByMetadata, "1");
      return {grpc::StatusCode::UNAVAILABLE, "this controller stands by"};
    }
    site->set_newest_event(newest_);
    return grpc::Status::OK;
  }
  grpc::Status Events(grpc::ServerContext* context, const v1::EventsRequest* request,
                      grpc::ServerWriter<v1::Event>* writer) override {
    int64_t seq = request->after_seq();
    MutexLock lock(mutex_);
    if (request->follow()) ++followers_;
    while (!context->IsCancelled() && !stopping_) {
      for (; seq < newest_; ++seq) {
        v1::Event event;
        event.set_seq(seq + 1);
        if (!hides_) event.set_kind("note");
        if (hides_ && !request->marks()) continue;
        if (!writer->Write(event)) return grpc::Status::OK;
      }
      if (!request->follow() && !hangs_) break;
      changed_.WaitFor(mutex_, std::chrono::milliseconds(10));  // to see that its caller has gone
    }
    return grpc::Status::OK;
  }
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest*,
                        v1::ListJobsResponse*) override {
    MutexLock lock(mutex_);
    asked_ = true;
    changed_.NotifyAll();
    while (!context->IsCancelled()) changed_.WaitFor(mutex_, std::chrono::milliseconds(10));
    return grpc::Status::CANCELLED;
  }
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest*, v1::ListNodesResponse*) override {
    return {grpc::StatusCode::PERMISSION_DENIED, "not yours"};
  }

  grpc::Status PlanAction(grpc::ServerContext*, const v1::ActionRequest* request,
                          v1::ActionPlan* plan) override {
    plan->set_verb(request->verb());
    plan->set_sequence(7);
    return grpc::Status::OK;
  }
  grpc::Status Suspend(grpc::ServerContext*, const v1::JobRef* r, v1::Empty*) override {
    return Note("suspend", *r);
  }
  grpc::Status Resume(grpc::ServerContext*, const v1::JobRef* r, v1::Empty*) override {
    return Note("resume", *r);
  }
  grpc::Status Hold(grpc::ServerContext*, const v1::JobRef* r, v1::Empty*) override {
    return Note("hold", *r);
  }
  grpc::Status Release(grpc::ServerContext*, const v1::JobRef* r, v1::Empty*) override {
    return Note("release", *r);
  }
  grpc::Status Kill(grpc::ServerContext*, const v1::JobRef* r, v1::Empty*) override {
    return Note("kill", *r);
  }
  grpc::Status Checkpoint(grpc::ServerContext*, const v1::CheckpointRequest* r,
                          v1::CheckpointResponse* made) override {
    made->set_checkpoint("17.1");
    return Note("checkpoint", *r);
  }
  grpc::Status Vacate(grpc::ServerContext*, const v1::CheckpointRequest* r, v1::Empty*) override {
    return Note("vacate", *r);
  }
  grpc::Status Migrate(grpc::ServerContext*, const v1::MigrateRequest* r, v1::Empty*) override {
    return Note("migrate", *r);
  }
  grpc::Status Cordon(grpc::ServerContext*, const v1::NodeRef* r, v1::Empty*) override {
    return Note("cordon", *r);
  }
  grpc::Status Uncordon(grpc::ServerContext*, const v1::NodeRef* r, v1::Empty*) override {
    return Note("uncordon", *r);
  }
  std::vector<std::string> given() {
    MutexLock lock(mutex_);
    return given_;
  }

  void Happen(int64_t newest) {
    MutexLock lock(mutex_);
    newest_ = newest;
    changed_.NotifyAll();
  }
  // Its events are not for this caller's eyes; how far it has looked it says to those who ask for it.
  void Hide() {
    MutexLock lock(mutex_);
    hides_ = true;
  }
  void SetStandsBy(bool stands_by) {
    MutexLock lock(mutex_);
    stands_by_ = stands_by;
  }
  // It answers no more, and its streams go on, with nothing in them.
  void Hang() {
    MutexLock lock(mutex_);
    hangs_ = true;
  }
  void AwaitQuestion() {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_; });
  }
  void EndStreams() {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  int followers() {
    MutexLock lock(mutex_);
    return followers_;
  }

 private:
  grpc::Status Note(const std::string& verb, const google::protobuf::Message& order) {
    MutexLock lock(mutex_);
    given_.push_back(absl::StrCat(verb, " ", order.ShortDebugString()));
    return grpc::Status::OK;
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> given_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 5;
  bool stands_by_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool hides_ ABSL_GUARDED_BY(mutex_) = false;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  int followers_ ABSL_GUARDED_BY(mutex_) = 0;
};

class PageSourceTest : public testing::Test {
 protected:
  // Of this name, until it is gone.
  struct Served {
    explicit Served(const std::string& socket) {
      grpc::ServerBuilder builder;
      builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
      builder.RegisterService(&controller);
      server = builder.BuildAndStart();
    }
    ~Served() {
      controller.EndStreams();
      server->Shutdown(std::chrono::system_clock::now());
      server->Wait();
    }
    Followed controller;
    std::unique_ptr<grpc::Server> server;
  };

  PageSourceTest() : folder_(mkdtemp(name_)), first_(std::in_place, folder_ + "/a") {}
  ~PageSourceTest() override {
    source_.Stop();
    second_.reset();
    first_.reset();
    std::filesystem::remove_all(folder_);
  }

  // So many events behind that one, however they come; fewer, if no more come for long.
  std::vector<int64_t> Take(int64_t after, size_t count) {
    std::vector<int64_t> seen;
    while (seen.size() < count) {
      const auto part = source_.EventsAfter(after, std::chrono::minutes(1));
      if (part.ok() && part->events.empty()) break;
      if (!part.ok()) break;
      for (const v1::Event& event : part->events) seen.push_back(event.seq());
      after = part->next;
    }
    return seen;
  }
  // -1: it is not told.
  int64_t Newest() {
    const auto newest = source_.NewestEvent();
    EXPECT_TRUE(newest.ok()) << newest.status();
    return newest.value_or(-1);
  }
  // Until the stream that has ended is noticed.
  absl::Status End(int64_t after) {
    for (;;) {
      const auto part = source_.EventsAfter(after, std::chrono::seconds(1));
      if (!part.ok()) return part.status();
      after = part->next;
    }
  }

  char name_[32] = "/tmp/siding-page-XXXXXX";
  const std::string folder_;
  std::optional<Served> first_;
  std::optional<Served> second_;
  PageSource source_{{.controller = folder_ + "/a," + folder_ + "/b"}};
};

TEST_F(PageSourceTest, WhatHappensBehindTheNewestEventComesByOneStream) {
  ASSERT_EQ(Newest(), 5);
  first_->controller.Happen(7);
  EXPECT_THAT(Take(5, 2), ElementsAre(6, 7));
  first_->controller.Happen(8);
  EXPECT_THAT(Take(7, 1), ElementsAre(8));
  EXPECT_EQ(first_->controller.followers(), 1);
}
TEST_F(PageSourceTest, WhereNothingHappensThePartIsEmptyAndItsEndIsItsBeginning) {
  ASSERT_TRUE(source_.NewestEvent().ok());
  const auto part = source_.EventsAfter(5, Duration(0));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_THAT(part->events, IsEmpty());
  EXPECT_EQ(part->next, 5);
}
TEST_F(PageSourceTest, EarlierEventsAreReadBesideTheStreamPartByPart) {
  first_->controller.Happen(2000);
  ASSERT_EQ(Newest(), 2000);
  const auto part = source_.EventsAfter(1000, Duration(0));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->events.size(), page::Source::kMostEvents);
  EXPECT_EQ(part->events.front().seq(), 1001);
  EXPECT_EQ(part->next, 1500);
  EXPECT_TRUE(part->more);
  const auto last = source_.EventsAfter(1990, Duration(0));
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->events.size(), 10u);
  EXPECT_FALSE(last->more);
}
// A user who may see few of many: each reading gets him further, though none comes to the end.
TEST_F(PageSourceTest, WhatHasComeOfEarlierEventsWhenItTakesTooLongIsAPart) {
  PageSource source({.controller = folder_ + "/a"}, std::chrono::seconds(1));
  ASSERT_TRUE(source.NewestEvent().ok());
  first_->controller.Hang();
  auto part = source.EventsAfter(2, Duration(0));
  for (int i = 0; i < 20 && !part.ok(); ++i) part = source.EventsAfter(2, Duration(0));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->events.size(), static_cast<size_t>(part->next - 2));
  EXPECT_GT(part->next, 2);
  EXPECT_TRUE(part->more);
}
// Whoever comes back is to go on from there, and not from where it began: it might never come to the end.
TEST_F(PageSourceTest, WhereNoneOfEarlierEventsIsForHisEyesAPartSaysHowFarItHasLooked) {
  PageSource source({.controller = folder_ + "/a"}, std::chrono::seconds(1));
  ASSERT_TRUE(source.NewestEvent().ok());
  first_->controller.Hide();
  const auto whole = source.EventsAfter(2, Duration(0));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->events, IsEmpty());
  EXPECT_EQ(whole->next, 5);
  first_->controller.Hang();
  auto part = source.EventsAfter(2, Duration(0));
  for (int i = 0; i < 20 && !part.ok(); ++i) part = source.EventsAfter(2, Duration(0));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_THAT(part->events, IsEmpty());
  EXPECT_GT(part->next, 2);
  EXPECT_TRUE(part->more);
}
TEST_F(PageSourceTest, WhatIsNotForHisEyesMovesThePlaceOfThoseWhoFollow) {
  ASSERT_EQ(Newest(), 5);
  first_->controller.Hide();
  first_->controller.Happen(7);
  int64_t after = 5;
  while (after < 7) {
    const auto part = source_.EventsAfter(after, std::chrono::minutes(1));
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_THAT(part->events, IsEmpty());
    ASSERT_GT(part->next, after);
    after = part->next;
  }
}
TEST_F(PageSourceTest, AControllerThatHangsIsNotThereThoughItsStreamGoesOn) {
  PageSource source({.controller = folder_ + "/a"}, std::chrono::seconds(1));
  ASSERT_TRUE(source.NewestEvent().ok());
  first_->controller.Hang();
  EXPECT_TRUE(source.EventsAfter(5, Duration(0)).ok());
  const absl::Status status = source.Here();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the controller has not answered within 1"));
}
TEST_F(PageSourceTest, ARefusalIsTheControllers) {
  v1::ListNodesResponse nodes;
  const absl::Status status = source_.ListNodes({}, nodes);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_EQ(status.message(), "not yours");
}
TEST_F(PageSourceTest, EachOrderIsTheControllersCallOfThatName) {
  v1::PageOrdered ordered;
  for (const char* verb : {"suspend", "resume", "hold", "release", "kill", "checkpoint", "vacate", "migrate",
                           "cordon", "uncordon"}) {
    v1::PageOrder order;
    v1::ActionRequest& action = *order.mutable_action();
    action.set_verb(verb);
    order.set_if_unchanged(40);
    if (absl::StrContains(verb, "cordon")) {
      action.set_node("n1");
    } else {
      action.set_job(17);
    }
    if (action.verb() == "vacate") action.set_tier(v1::LOCAL);
    if (action.verb() == "migrate") action.add_nodes("n2");
    EXPECT_TRUE(source_.Order(order, ordered).ok()) << verb;
  }
  EXPECT_THAT(first_->controller.given(),
              ElementsAre("suspend id: 17 if_unchanged: 40", "resume id: 17 if_unchanged: 40",
                          "hold id: 17 if_unchanged: 40", "release id: 17 if_unchanged: 40",
                          "kill id: 17 if_unchanged: 40", "checkpoint id: 17 if_unchanged: 40",
                          "vacate id: 17 tier: LOCAL if_unchanged: 40",
                          "migrate id: 17 nodes: \"n2\" if_unchanged: 40",
                          "cordon name: \"n1\" if_unchanged: 40", "uncordon name: \"n1\" if_unchanged: 40"));
  EXPECT_EQ(ordered.checkpoint(), "17.1");
  v1::PageOrder odd;
  odd.mutable_action()->set_verb("hop");
  EXPECT_TRUE(absl::IsInvalidArgument(source_.Order(odd, ordered)));
}
TEST_F(PageSourceTest, APlanIsTheControllers) {
  v1::ActionRequest request;
  request.set_verb("kill");
  v1::ActionPlan plan;
  EXPECT_TRUE(source_.PlanAction(request, plan).ok());
  EXPECT_EQ(plan.sequence(), 7);
}
TEST_F(PageSourceTest, AStreamThatEndsIsToldAndTheNextControllerIsFollowed) {
  ASSERT_TRUE(source_.NewestEvent().ok());
  first_.reset();
  EXPECT_TRUE(absl::IsUnavailable(End(5)));
  EXPECT_TRUE(absl::IsUnavailable(source_.NewestEvent().status()));
  second_.emplace(folder_ + "/b");
  second_->controller.Happen(9);
  ASSERT_EQ(Newest(), 9);
  second_->controller.Happen(10);
  EXPECT_THAT(Take(9, 1), ElementsAre(10));
}
// A page is told at once, and not kept waiting for a take-over.
TEST_F(PageSourceTest, WhereOnlyOneStandsByThereIsNone) {
  first_->controller.SetStandsBy(true);
  const absl::Status status = source_.NewestEvent().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("no controller is active: "));
  first_->controller.SetStandsBy(false);
  EXPECT_TRUE(source_.NewestEvent().ok());
}
TEST_F(PageSourceTest, StopEndsTheCallThatWaitsAndThoseThatCome) {
  ASSERT_TRUE(source_.NewestEvent().ok());
  absl::Status status;
  v1::ListJobsResponse jobs;
  std::thread asking([&] { status = source_.ListJobs({}, jobs); });
  first_->controller.AwaitQuestion();
  source_.Stop();
  asking.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(source_.ListJobs({}, jobs)));
  EXPECT_FALSE(End(5).ok());
  EXPECT_TRUE(absl::IsCancelled(source_.NewestEvent().status()));
}

}  // namespace
}  // namespace siding::cli
