#include "controller/platform/slurm/settings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kConfig[] =
    "Configuration data as of 2026-11-21T09:05:06\n"
    "AuthInfo                = socket=/run/munge/s,cred_expire=5\n"
    "ClusterName             = testbed\n"
    "JobFileAppend           = 1\n"
    "RequeueExit             = 99\n"
    "RequeueExitHold         = (null)\n"
    "SLURM_VERSION           = 22.05.8\n"
    "\nSlurmctld(primary) at host is UP\n";

TEST(Settings, AreReadAsSlurmPrintsThem) {
  const auto settings = ParseSettings(kConfig);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->cluster, "testbed");
  EXPECT_EQ(settings->version, "22.05.8");
  EXPECT_THAT(settings->requeue_exits, ElementsAre(99));
  EXPECT_TRUE(settings->keeps_output);
  EXPECT_EQ(settings->requeue_delay, std::chrono::seconds(6));
  EXPECT_THAT(ProblemsOf(*settings), IsEmpty());
}

TEST(Settings, ThatAreMissingAreSlurmsOwn) {
  const auto settings = ParseSettings("SLURM_VERSION = 22.05.8\nAuthInfo = (null)\nRequeueExit = (null)\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->requeue_delay, std::chrono::seconds(121));
  EXPECT_THAT(ProblemsOf(*settings), ElementsAre(HasSubstr("RequeueExit"), HasSubstr("JobFileAppend")));
}

TEST(Settings, ExitCodesMayBeRanges) {
  const auto settings = ParseSettings("SLURM_VERSION = 22.05.8\nRequeueExit = 5,97-99\nJobFileAppend = 1\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->requeue_exits, ElementsAre(5, 97, 98, 99));
  EXPECT_THAT(ProblemsOf(*settings), IsEmpty());
}

TEST(Settings, AnErrorMessageIsNone) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(ParseSettings("slurm_load_ctl_conf error: Unable to contact").status()));
}

TEST(Settings, AnExpiryThatCannotBeMeantIsCut) {
  const auto settings =
      ParseSettings("SLURM_VERSION = 22.05.8\nAuthInfo = cred_expire=9223372036854775807\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->requeue_delay, std::chrono::hours(365 * 24) + std::chrono::seconds(1));
}

}  // namespace
}  // namespace siding::slurm
