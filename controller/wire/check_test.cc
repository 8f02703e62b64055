#include "controller/wire/check.h"

#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

v1::FromAgent Report(const std::function<void(v1::TaskReport&)>& change) {
  v1::FromAgent message;
  message.mutable_report()->mutable_task()->set_job(1);
  change(*message.mutable_report());
  return message;
}

std::string ErrorOf(const v1::FromAgent& message) {
  const absl::Status status = CheckNumbers(message);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(CheckNumbers, AnOrdinaryReportPasses) {
  EXPECT_TRUE(CheckNumbers(Report([](v1::TaskReport& report) {
                report.set_memory(1LL << 40);
                report.set_started_us(1'700'000'000'000'000);
              })).ok());
}

TEST(CheckNumbers, NamesTaskAndField) {
  EXPECT_THAT(ErrorOf(Report([](v1::TaskReport& report) { report.set_memory(-1); })),
              HasSubstr("report: memory: expected a number from 0 to"));
}

TEST(CheckNumbers, MemoryThatWouldOverflowASum) {
  ErrorOf(Report([](v1::TaskReport& report) { report.set_gpu_memory(kHuge); }));
}

TEST(CheckNumbers, OperationsThatWouldOverflowADifference) {
  ErrorOf(Report([](v1::TaskReport& report) { report.set_failed_op(std::numeric_limits<int64_t>::min()); }));
}

// It is journalled.
TEST(CheckNumbers, ADigestThatIsNone) {
  const std::string good(64, 'a');
  const auto with = [](const std::string& digest) {
    return Report([&](v1::TaskReport& report) { report.set_image_digest(digest); });
  };
  EXPECT_TRUE(CheckNumbers(with(good)).ok());
  EXPECT_THAT(ErrorOf(with(good + "a")), HasSubstr("image_digest: expected 64 hex digits"));
  EXPECT_THAT(ErrorOf(with(std::string(64, 'x'))), HasSubstr("image_digest: expected"));
}

TEST(CheckNumbers, AStartBeyondTheCalendar) {
  ErrorOf(Report([](v1::TaskReport& report) { report.set_started_us(kHuge); }));
}

TEST(CheckNumbers, MoreTasksThanAJobCanHave) {
  ErrorOf(Report([](v1::TaskReport& report) { report.mutable_spec()->set_nodes(1 << 30); }));
}

TEST(CheckNumbers, ARateThatIsNoNumber) {
  v1::FromAgent message;
  message.mutable_heartbeat()->mutable_shared()->mutable_dump()->set_bytes_per_second(kNaN);
  EXPECT_THAT(ErrorOf(message), HasSubstr("heartbeat: shared: dump: bytes_per_second"));
}

TEST(CheckNumbers, AKeptImageOfANegativeRank) {
  v1::FromAgent message;
  message.mutable_heartbeat()->mutable_kept()->add_images()->set_rank(-1);
  EXPECT_THAT(ErrorOf(message), HasSubstr("heartbeat: kept: rank"));
}

TEST(CheckNumbers, ADamagedImageOfARankThatOverflowsADifference) {
  v1::FromAgent message;
  message.mutable_heartbeat()->add_damaged()->set_rank(std::numeric_limits<int32_t>::min());
  EXPECT_THAT(ErrorOf(message), HasSubstr("heartbeat: damaged: rank"));
}

TEST(CheckNumbers, AnImageThatIsNewerThanItself) {
  EXPECT_THAT(ErrorOf(Report([](v1::TaskReport& report) {
                report.set_image_bytes(10);
                report.set_image_new_bytes(11);
              })),
              HasSubstr("image_new_bytes: expected a number from 0 to 10"));
}

TEST(CheckNumbers, ProgressThatIsNoNumber) {
  v1::FromAgent message;
  message.mutable_progress()->set_bytes_per_second(kNaN);
  EXPECT_THAT(ErrorOf(message), HasSubstr("progress: bytes_per_second"));
}

TEST(CheckNumbers, ANodeWithANegativeCapacity) {
  v1::Hello hello;
  hello.mutable_capacity()->set_slots(-4);
  EXPECT_THAT(std::string(CheckNumbers(hello).message()), HasSubstr("capacity: slots"));
}

TEST(CheckNumbers, ADeadlineBeyondTheCalendar) {
  v1::JobSpec spec;
  spec.set_start_by_us(kHuge);
  EXPECT_THAT(std::string(CheckNumbers(spec).message()), HasSubstr("start_by: expected"));
}

}  // namespace
}  // namespace siding
