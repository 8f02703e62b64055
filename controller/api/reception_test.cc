#include "controller/api/reception.h"

#include <functional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

constexpr Duration kMoment = std::chrono::milliseconds(1);

struct FakeArrival final : public Arrival {
  explicit FakeArrival(absl::StatusOr<UserIdentity> who) : user(std::move(who)) {}

  std::string peer() const override { return "somewhere"; }
  absl::StatusOr<UserIdentity> Who() override { return user; }
  bool IsCancelled() const override { return cancelled; }
  End Read(Duration) override {
    ++reads;
    if (meanwhile) meanwhile();
    return end;
  }

  absl::StatusOr<UserIdentity> user;
  bool cancelled = false;
  End end = End::kCame;
  std::function<void()> meanwhile;  // while the request is on its way
  int reads = 0;
};

const UserIdentity kAda{1000, 1000, "ada"}, kBob{1001, 1001, "bob"}, kRoot{0, 0, "root"};

TEST(ReceptionTest, SaysWhoseARequestIsThatHasCome) {
  Reception reception({}, kMoment);
  FakeArrival call(kAda);
  const auto user = reception.Take(call, "Submit");
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(user->user, "ada");
}
TEST(ReceptionTest, ReadsNothingOfACallerThatIsNotKnown) {
  Reception reception({}, kMoment);
  FakeArrival call(absl::UnauthenticatedError("who is that?"));
  EXPECT_EQ(reception.Take(call, "Submit").status(), call.user.status());
  EXPECT_EQ(call.reads, 0);
}

struct Ending {
  Arrival::End end;
  bool cancelled;
  absl::StatusCode code;
};
TEST(ReceptionTest, SaysHowARequestDidNotCome) {
  for (const Ending& ending : std::vector<Ending>{
           {Arrival::End::kOver, false, absl::StatusCode::kDeadlineExceeded},
           {Arrival::End::kOver, true, absl::StatusCode::kDeadlineExceeded},
           {Arrival::End::kNothing, false, absl::StatusCode::kInvalidArgument},
           {Arrival::End::kNothing, true, absl::StatusCode::kCancelled},
       }) {
    Reception reception({}, kMoment);
    FakeArrival call(kAda);
    call.end = ending.end;
    call.cancelled = ending.cancelled;
    EXPECT_EQ(reception.Take(call, "Submit").status().code(), ending.code);
  }
}

// What the second call is told, which comes while the first one is on its way.
absl::Status Second(const ServiceLimits& limits, const UserIdentity& first, const UserIdentity& second) {
  Reception reception(limits, kMoment);
  FakeArrival one(first), other(second);
  absl::Status status;
  one.meanwhile = [&] { status = reception.Take(other, "Submit").status(); };
  EXPECT_TRUE(reception.Take(one, "Submit").ok());
  FakeArrival again(first);
  EXPECT_TRUE(reception.Take(again, "Submit").ok()) << "the places are not given back";
  return status;
}
TEST(ReceptionTest, OnlySoManyOfAUserMayBeOnTheirWay) {
  const ServiceLimits limits{.arriving_calls_per_user = 1};
  EXPECT_THAT(Second(limits, kAda, kAda).message(), HasSubstr("limits.arriving_calls_per_user is 1"));
  EXPECT_TRUE(Second(limits, kAda, kBob).ok());
  EXPECT_TRUE(Second(limits, kRoot, kRoot).ok());
}
TEST(ReceptionTest, OnlySoManyOfAllMayBeOnTheirWay) {
  const ServiceLimits limits{.arriving_calls = 1};
  EXPECT_THAT(Second(limits, kRoot, kRoot).message(), HasSubstr("limits.arriving_calls is 1"));
}

}  // namespace
}  // namespace siding
