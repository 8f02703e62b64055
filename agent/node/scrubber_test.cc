#include "agent/node/scrubber.h"

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "store/test_support.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ScrubberTest : public store::StoreTest {
 protected:
  ScrubberTest() {
    Put(key_);
    Put(other_);
  }
  std::unique_ptr<Scrubber> Make(Duration interval = 0s) {
    const auto is_ours = [this](const Manifest& manifest) { return !(manifest.key == not_ours_); };
    return std::make_unique<Scrubber>(
        ScrubOptions{interval, Bytes{1LL << 40}}, folder_ + "/scrubbed",
        std::vector<Scrubber::Tier>{{v1::SHARED, [this] { return store_.get(); }, is_ours}}, clock_);
  }
  void Damage(const ImageKey& key) {
    ASSERT_TRUE(store::WriteAt(store_->Path(key).value() + "/core-1.img", "x"));
  }

  const ImageKey other_{CheckpointId("42.4"), 1};
  ImageKey not_ours_;
  FakeClock clock_{FromMicros(1'700'000'000'000'000)};
};

TEST_F(ScrubberTest, ReadsEveryImage) {
  const auto scrubber = Make();
  scrubber->Round();
  EXPECT_EQ(scrubber->read(), Bytes{14});
  EXPECT_THAT(scrubber->Damaged(), IsEmpty());
}

TEST_F(ScrubberTest, DamagedImageIsTold) {
  const auto scrubber = Make();
  Damage(other_);
  scrubber->Round();
  ASSERT_THAT(scrubber->Damaged(), SizeIs(1));
  const v1::DamagedImage image = scrubber->Damaged()[0];
  EXPECT_EQ(image.checkpoint(), "42.4");
  EXPECT_EQ(image.rank(), 1);
  EXPECT_EQ(image.tier(), v1::SHARED);
  EXPECT_THAT(image.problem(), HasSubstr("core-1.img is damaged"));
}

TEST_F(ScrubberTest, ImageOfAnotherNodeIsLeftToIt) {
  not_ours_ = other_;
  const auto scrubber = Make();
  Damage(other_);
  scrubber->Round();
  EXPECT_THAT(scrubber->Damaged(), IsEmpty());
}

TEST_F(ScrubberTest, DeletedImageIsForgotten) {
  const auto scrubber = Make();
  Damage(key_);
  scrubber->Round();
  ASSERT_TRUE(store_->Delete(key_).ok());
  scrubber->ForgetDeleted(v1::SHARED);
  EXPECT_THAT(scrubber->Damaged(), IsEmpty());
}

TEST_F(ScrubberTest, RoundsBeginByThemselves) {
  auto first = Make(1h);
  first->Start();
  EXPECT_EQ(first->NextRound(), clock_.Now() + 1h) << "never before one interval has passed";
  first.reset();
  clock_.Advance(2h);
  Damage(key_);
  const auto second = Make(1h);  // the agent was started again
  second->Start();
  EXPECT_TRUE(Eventually([&] { return second->Damaged().size() == 1; }));
  EXPECT_EQ(second->NextRound(), clock_.Now() + 1h);
}

TEST_F(ScrubberTest, ALastRoundInTheFutureCountsAsNow) {
  ASSERT_TRUE(
      WriteFileAtomically(folder_ + "/scrubbed", std::to_string(ToMicros(clock_.Now() + 1000h))).ok());
  const auto scrubber = Make(1h);
  scrubber->Start();
  EXPECT_TRUE(Eventually([&] { return scrubber->NextRound() == clock_.Now() + 1h; }));
}

TEST_F(ScrubberTest, WithoutAnIntervalThereAreNoRounds) {
  const auto scrubber = Make();
  scrubber->Start();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/scrubbed"));
}

TEST(PauseForTest, KeepsToTheRate) {
  EXPECT_EQ(PauseFor(Bytes{32 << 20}, 500ms, Bytes{16 << 20}), 1500ms);
  EXPECT_EQ(PauseFor(Bytes{32 << 20}, 5s, Bytes{16 << 20}), 0s) << "a slow disk need not be waited for";
}

}  // namespace
}  // namespace siding
