#include "controller/platform/kubernetes/watch/informer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "common/patience_for_test.h"
#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using FaultKind = Fault::Kind;

// What an informer has told, and a way to wait for it.
class Heard final : public InformerListener {
 public:
  void OnChanges(const std::vector<ObjectChange>& changes) override {
    MutexLock lock(mutex_);
    for (const ObjectChange& change : changes) {
      ++changes_;
      if (change.before) names_.erase(change.before->name.name);
      if (change.after) names_.insert(change.after->name.name);
    }
    changed_.NotifyAll();
  }
  void OnSynced() override {
    MutexLock lock(mutex_);
    synced_ = true;
    changed_.NotifyAll();
  }
  void OnHealth(const absl::Status& health) override {
    MutexLock lock(mutex_);
    healths_.push_back(health.code());
    changed_.NotifyAll();
  }
  void AwaitNames(const std::set<std::string>& names) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return synced_ && names_ == names;
    }));
  }
  std::vector<absl::StatusCode> AwaitHealths(size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(
        mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return healths_.size() >= count; }));
    return healths_;
  }
  std::vector<absl::StatusCode> healths() { return AwaitHealths(0); }
  int changes() {
    MutexLock lock(mutex_);
    return changes_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::StatusCode> healths_ ABSL_GUARDED_BY(mutex_);
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
};

class InformerTest : public testing::Test {
 protected:
  void Start() { informer_ = std::make_unique<Informer>(transport_, pacer_, heard_, Pods()); }
  void Put(const std::string& name, int x = 0) {
    transport_.Do([&](FakeApiServer& server) { server.store().Put("pods", {"d", name}, {{"x", x}}); });
  }
  void Remove(const std::string& name) {
    transport_.Do([&](FakeApiServer& server) { server.store().Remove("pods", {"d", name}); });
  }

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_;
  FakeTransport transport_{server_, clock_, FakeTransport::Watching::kOn};
  Heard heard_;
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, TellsWhatIsThereAndWhatComes) {
  Put("a");
  Start();
  heard_.AwaitNames({"a"});
  Put("b");
  heard_.AwaitNames({"a", "b"});
  Remove("a");
  heard_.AwaitNames({"b"});
  EXPECT_EQ(informer_->Snapshot().size(), 1U);
}
TEST_F(InformerTest, FindsWhatWasDeletedWhileItWasAway) {
  Put("a");
  Put("b");
  Start();
  heard_.AwaitNames({"a", "b"});
  transport_.Add({.kind = FaultKind::kUnreachable, .path = "/pods", .times = 5});
  transport_.Hold("pods", true);
  Remove("a");
  Put("c");
  transport_.Do([](FakeApiServer& server) { server.Compact(); });
  transport_.EndWatches();
  transport_.Hold("pods", false);
  heard_.AwaitNames({"b", "c"});
}
TEST_F(InformerTest, AWatchThatBreaksIsGoneOnWith) {
  transport_.Add({.kind = FaultKind::kCut, .path = "/pods", .times = 3, .lines = 1});
  Start();
  heard_.AwaitNames({});
  for (const char* name : {"a", "b", "c", "e"}) Put(name);
  heard_.AwaitNames({"a", "b", "c", "e"});
  EXPECT_EQ(heard_.changes(), 4);
}
TEST_F(InformerTest, LinesThatComeTwiceAreOneChange) {
  transport_.Add({.kind = FaultKind::kTwice, .path = "/pods"});
  Start();
  heard_.AwaitNames({});
  Put("a");
  Put("b");
  heard_.AwaitNames({"a", "b"});
  EXPECT_EQ(heard_.changes(), 2);
}
TEST_F(InformerTest, HealthIsToldOnce) {
  transport_.Add({.kind = FaultKind::kAnswer, .path = "/pods", .times = 3, .code = 403});
  Start();
  heard_.AwaitNames({});
  EXPECT_THAT(heard_.AwaitHealths(2),
              ElementsAre(absl::StatusCode::kPermissionDenied, absl::StatusCode::kOk));
}
// Nothing changes, and the server sends no bookmarks.
TEST_F(InformerTest, SilenceIsNoFailureWhereTheServerAnswers) {
  transport_.Add({.kind = FaultKind::kSilent, .times = 3});
  Put("a");
  Start();
  heard_.AwaitNames({"a"});
  ASSERT_TRUE(transport_.AwaitAsked(8));  // a list, and three times a watch and a question
  Put("b");
  heard_.AwaitNames({"a", "b"});
  EXPECT_THAT(heard_.healths(), IsEmpty());
  for (const std::string& asked : transport_.asked())
    EXPECT_EQ(asked.find("resourceVersion=&"), std::string::npos) << asked;
}
TEST_F(InformerTest, SilenceIsAFailureWhereItDoesNot) {
  Put("a");
  Start();
  ASSERT_TRUE(transport_.AwaitAsked(2));  // it watches
  transport_.Add({.kind = FaultKind::kSilent});
  transport_.Add({.kind = FaultKind::kUnreachable});
  transport_.EndWatches();
  EXPECT_EQ(heard_.AwaitHealths(1).front(), absl::StatusCode::kUnavailable);
}
TEST_F(InformerTest, AnExpiredWatchIsFollowedByAList) {
  transport_.Add({.kind = FaultKind::kExpired, .path = "/pods"});
  Put("a");
  Start();
  ASSERT_TRUE(transport_.AwaitAsked(4));
  const auto asked = transport_.asked();
  EXPECT_THAT(asked[1], StartsWith("GET /api/v1/pods?watch=1"));
  EXPECT_THAT(asked[2], StartsWith("GET /api/v1/pods?limit=500"));
}
TEST_F(InformerTest, StopsWhileItWatches) {
  Start();
  ASSERT_TRUE(transport_.AwaitAsked(2));
  informer_.reset();
  EXPECT_THAT(heard_.AwaitHealths(0), IsEmpty());
}
TEST(RealPacer, APauseEndsWithAStop) {
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(RealPacer().Pause(std::chrono::hours(1), stop.get_token()));
}

// Everything that may go wrong, in an order that a seed draws; at the end the informer knows what the server
// has, and the listener was told of it.
TEST(InformerWorld, KnowsInTheEndWhatIsThere) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    FakeClock clock;
    FakePacer pacer(clock);
    FakeApiServer server;
    FakeTransport transport(server, clock);
    ApiClient client(transport, pacer, {}, {.attempts = 1});
    InformerState state({.page = 3, .seed = seed});
    Objects told;
    uint64_t random = seed * 0x9E3779B97F4A7C15U;
    const auto draw = [&](uint64_t below) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      return (random >> 33U) % below;
    };
    const auto turn = [&] {
      const InformerState::Step step = state.Next();
      if (step.not_before > clock.Now()) clock.Advance(step.not_before - clock.Now());
      if (step.list) {
        auto page = client.GetPage(Pods(), {}, step.limit, step.token);
        page.ok() ? state.OnPage(*std::move(page)) : state.OnListFailed(page.status(), clock.Now());
      } else {
        state.OnWatchBegun(clock.Now());
        absl::Status said;
        const absl::Status ended =
            client.Watch(Pods(), {}, step.version, std::chrono::seconds(60), [&](absl::string_view line) {
              auto event = EventFrom(line, "watch");
              if (event.ok()) state.OnEvent(*event);
              said = event.status();
              return event.ok();
            });
        state.OnWatchEnded(said.ok() ? ended : said, clock.Now());
      }
      for (const ObjectChange& change : state.TakeChanges()) {
        // Each follows from what was told before.
        const ObjectName name = change.before ? change.before->name : change.after->name;
        ASSERT_EQ(told.count(name) > 0, change.before.has_value());
        if (change.before) {
          ASSERT_EQ(told[name].version, change.before->version);
        }
        told.erase(name);
        if (change.after) told[name] = *change.after;
      }
    };
    for (int i = 0; i < 300; ++i) {
      const ObjectName name{"d", std::string(1, static_cast<char>('a' + draw(10)))};
      if (draw(3) == 0) {
        server.store().Remove("pods", name);
      } else {
        server.store().Put("pods", name, {{"x", i}});
      }
      if (draw(10) == 0) server.Compact();
      if (draw(4) == 0) {
        transport.Add({.kind = static_cast<FaultKind>(draw(7)),
                       .path = "/pods",
                       .code = std::vector<int>{401, 403, 410, 429, 500, 504}[draw(6)],
                       .takes = std::chrono::seconds(draw(60)),
                       .lines = static_cast<int>(draw(4))});
      }
      if (draw(2) == 0) turn();
    }
    for (int i = 0; i < 100; ++i) turn();  // the faults that are left, and then none
    const FakeStore::Objects& real = server.store().All("pods");
    ASSERT_EQ(told.size(), real.size());
    for (const auto& [name, object] : real) {
      EXPECT_EQ(told[name].version, TextAt(*object, {"metadata", "resourceVersion"}));
    }
  }
}

}  // namespace
}  // namespace siding::kubernetes
